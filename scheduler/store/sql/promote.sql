-- Let the oldest waiting run of each job be the next active one, where nothing is in its way; of the most urgent ones, so that
-- what is asked for now does not wait for a long backfill.
-- ANY (ARRAY[…]): each run by its id; see settle, and renew for the order.
WITH oldest AS MATERIALIZED (
    SELECT DISTINCT ON (waiting.job) waiting.id, waiting.job
    FROM soloist.run waiting
    WHERE waiting.status = 'waiting' AND (%(job)s::int[] IS NULL OR waiting.job = ANY (%(job)s::int[]))
    ORDER BY waiting.job, waiting.priority, waiting.scheduled_at
), free AS MATERIALIZED (
    -- one that somebody has locked holds up its own job alone
    SELECT run.id FROM soloist.run JOIN oldest ON run.id = ANY (ARRAY[oldest.id]) WHERE run.status = 'waiting'
    ORDER BY oldest.id FOR NO KEY UPDATE OF run SKIP LOCKED
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM free LIMIT 1) any_waiting
)
UPDATE soloist.run
SET status = 'queued', ready_at = clock_timestamp()
FROM free
WHERE run.id = ANY (ARRAY[free.id])
  -- not NOT EXISTS: that is a join, and may go by the index of the job's whole history
  AND (SELECT true FROM soloist.run active
       WHERE active.job = run.job AND active.exclusive AND active.status IN ('queued', 'running')) IS NULL
RETURNING run.id, run.job, (SELECT count(*) FROM told)
