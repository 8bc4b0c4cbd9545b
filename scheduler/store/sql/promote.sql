-- Let the oldest waiting run of each job be the next active one, where nothing is in its way.
WITH oldest AS MATERIALIZED (
    SELECT DISTINCT ON (waiting.job) waiting.id, waiting.job
    FROM soloist.run waiting
    WHERE waiting.status = 'waiting' AND (%(job)s::int[] IS NULL OR waiting.job = ANY (%(job)s::int[]))
    ORDER BY waiting.job, waiting.scheduled_at
), free AS MATERIALIZED (
    -- one that somebody has locked holds up its own job alone
    SELECT run.id FROM soloist.run WHERE run.id IN (SELECT oldest.id FROM oldest) AND run.status = 'waiting'
    ORDER BY run.id FOR NO KEY UPDATE SKIP LOCKED
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM free LIMIT 1) any_waiting
)
UPDATE soloist.run
SET status = 'queued', ready_at = clock_timestamp()
FROM free
WHERE run.id = free.id
  AND NOT EXISTS (SELECT FROM soloist.run active
                  WHERE active.job = run.job AND active.exclusive AND active.status IN ('queued', 'running'))
RETURNING run.id, run.job, (SELECT count(*) FROM told)
