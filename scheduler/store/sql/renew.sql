-- Renew the leases of the runs named, and write their progress. Named by (id, attempt), never "all that is mine": an orphan of
-- an unclear claim would be renewed for ever. SKIP LOCKED: a row that a commit holds for a moment delays no other.
-- ANY (ARRAY[…]): each run by its id; see settle, and in the order of the list: that of the runs' ids is got by reading them all.
WITH mine AS MATERIALIZED (
    SELECT * FROM unnest(%(id)s::uuid[], %(attempt)s::int[], %(progress)s::text[]) AS m (id, attempt, progress)
), held AS MATERIALIZED (
    SELECT run.id, mine.attempt, mine.progress
    FROM soloist.run JOIN mine ON run.id = ANY (ARRAY[mine.id]) AND mine.attempt = run.attempt
    WHERE run.claimed_by = %(me)s::uuid AND run.status = 'running'
    ORDER BY mine.id
    FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE soloist.run
SET claimed_until = clock_timestamp() + make_interval(secs => %(lease)s::float8),
    progress = COALESCE(held.progress::jsonb, run.progress)
FROM held
WHERE run.id = ANY (ARRAY[held.id])
RETURNING run.id, held.attempt, run.cancel_requested_at IS NOT NULL, clock_timestamp()
