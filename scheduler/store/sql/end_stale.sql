-- Queued and waiting runs of jobs that the plan in force no longer has will never run: they say so.
-- ANY (ARRAY[…]): each run by its id; see settle, and renew for the order.
WITH unwanted AS MATERIALIZED (
    -- each state by its own index
    SELECT run.id FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE run.status = 'queued' AND job.removed_at IS NOT NULL
    UNION ALL
    SELECT run.id FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE run.status = 'waiting' AND job.removed_at IS NOT NULL
), stale AS MATERIALIZED (
    SELECT run.id FROM soloist.run JOIN unwanted ON run.id = ANY (ARRAY[unwanted.id]) WHERE run.finished_at IS NULL
    ORDER BY unwanted.id FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE soloist.run
SET status = 'skipped', skip_reason = 'stale_config', finished_at = clock_timestamp(), ready_at = NULL
FROM stale, soloist.job
WHERE run.id = ANY (ARRAY[stale.id]) AND job.id = run.job AND run.status IN ('queued', 'waiting')
RETURNING run.id, job.name, run.run_key, run.scheduled_at
