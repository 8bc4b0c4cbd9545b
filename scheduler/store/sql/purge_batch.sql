-- Looks at the next runs by id, oldest first, and deletes the expired among them, up to `room`. `last` is where the next
-- batch goes on, NULL at the end. A row that somebody has locked is left for the next purge.
WITH span AS MATERIALIZED (
    SELECT id FROM soloist.run WHERE id > %(after)s::uuid AND id < %(before)s::uuid ORDER BY id LIMIT %(batch)s
), doomed AS MATERIALIZED (
    SELECT r.id
    FROM soloist.run r
    WHERE r.id = ANY (ARRAY(SELECT id FROM span)) -- an array is looked up by the key; a join may scan the table
      AND soloist.is_past(r.status, r.run_key, r.scheduled_at, r.finished_at,
                          %(succeeded)s::timestamptz, %(failed)s::timestamptz, %(skipped)s::timestamptz, clock_timestamp())
    ORDER BY r.id
    LIMIT %(room)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM soloist.run WHERE id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING status
), their_attempts AS (
    DELETE FROM soloist.attempt WHERE run = ANY (ARRAY(SELECT id FROM doomed))
)
SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1) AS last,
       count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE status NOT IN ('succeeded', 'skipped')) AS failed,
       count(*) FILTER (WHERE status = 'skipped') AS skipped
FROM gone
