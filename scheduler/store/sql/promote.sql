-- Let the oldest waiting run of each job be the next active one, where nothing is in its way.
WITH oldest AS MATERIALIZED (
    SELECT DISTINCT ON (waiting.job) waiting.id, waiting.job
    FROM soloist.run waiting
    WHERE waiting.status = 'waiting' AND (%(job)s::int[] IS NULL OR waiting.job = ANY (%(job)s::int[]))
    ORDER BY waiting.job, waiting.scheduled_at
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM oldest LIMIT 1) any_waiting
)
UPDATE soloist.run
SET status = 'queued', ready_at = clock_timestamp()
FROM oldest
WHERE run.id = oldest.id AND run.status = 'waiting'
  AND NOT EXISTS (SELECT FROM soloist.run active
                  WHERE active.job = run.job AND active.exclusive AND active.status IN ('queued', 'running'))
RETURNING run.id, run.job, (SELECT count(*) FROM told)
