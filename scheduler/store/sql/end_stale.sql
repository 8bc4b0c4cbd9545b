-- Queued and waiting runs of jobs that the plan in force no longer has will never run: they say so.
WITH unwanted AS MATERIALIZED (
    -- each state by its own index
    SELECT run.id FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE run.status = 'queued' AND job.removed_at IS NOT NULL
    UNION ALL
    SELECT run.id FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE run.status = 'waiting' AND job.removed_at IS NOT NULL
), stale AS MATERIALIZED (
    SELECT run.id FROM soloist.run WHERE run.id IN (SELECT unwanted.id FROM unwanted) AND run.finished_at IS NULL
    ORDER BY run.id FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE soloist.run
SET status = 'skipped', skip_reason = 'stale_config', finished_at = clock_timestamp(), ready_at = NULL
FROM stale, soloist.job
WHERE run.id = stale.id AND job.id = run.job AND run.status IN ('queued', 'waiting')
RETURNING run.id, job.name, run.run_key, run.scheduled_at
