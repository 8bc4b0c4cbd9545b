-- Looks at the next runs by id, oldest first, and deletes the expired among them, up to `room`. `last` is where the next
-- batch goes on, NULL at the end. A row that somebody has locked is left for the next purge. A run that stands for a period
-- (`once_per`) stays until that is over, however short the retention: without it the period's next tick would run again.
WITH span AS MATERIALIZED (
    SELECT id FROM soloist.run WHERE id > %(after)s::uuid AND id < %(before)s::uuid ORDER BY id LIMIT %(batch)s
), doomed AS MATERIALIZED (
    SELECT r.id
    FROM soloist.run r
    WHERE r.id = ANY (ARRAY(SELECT id FROM span)) -- an array is looked up by the key; a join may scan the table
      AND r.finished_at < CASE r.status
          WHEN 'succeeded' THEN %(succeeded)s::timestamptz
          WHEN 'skipped' THEN %(skipped)s::timestamptz
          WHEN 'failed' THEN %(failed)s::timestamptz
          WHEN 'timed_out' THEN %(failed)s::timestamptz
          WHEN 'cancelled' THEN %(failed)s::timestamptz
          WHEN 'lost' THEN %(failed)s::timestamptz
      END
      AND CASE WHEN r.run_key LIKE '____-__-__' THEN r.scheduled_at < clock_timestamp() - interval '48 hours'
               WHEN r.run_key LIKE '____-W__' THEN r.scheduled_at < clock_timestamp() - interval '192 hours'
               WHEN r.run_key LIKE '____-__' THEN r.scheduled_at < clock_timestamp() - interval '768 hours'
               ELSE true END
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
