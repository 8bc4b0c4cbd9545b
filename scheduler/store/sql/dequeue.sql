-- Take queued runs into free seats: never more than those. Tick overflow, retries, take-overs and manual runs all pass here.
-- Only runs of jobs whose spec in force is the one that this replica's file has: asked of each run by itself, so that no plan
-- can begin with the jobs and sort all that is queued, as the planner likes to while it knows little of the table (measured at
-- 40,000 queued: 60 ms instead of 9). MATERIALIZED: the locked rows are chosen once.
-- ANY (ARRAY[…]): each run by its id; see settle.
WITH picked AS MATERIALIZED (
    SELECT run.id
    FROM soloist.run
    WHERE run.status = 'queued' AND run.ready_at <= (SELECT clock_timestamp())  -- once: else no index is asked for it
      AND (SELECT true FROM soloist.plan_job held JOIN soloist.job ON job.id = held.job
           WHERE held.generation = %(generation)s::int AND held.job = run.job
             AND job.spec_hash = held.spec_hash AND job.removed_at IS NULL)
    ORDER BY run.priority, run.ready_at
    LIMIT %(seats)s::int
    FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE soloist.run
SET status = 'running', attempt = run.attempt + 1, claimed_by = %(me)s::uuid,
    claimed_until = clock_timestamp() + make_interval(secs => %(lease)s::float8),
    ready_at = NULL, started_at = clock_timestamp()
FROM picked
WHERE run.id = ANY (ARRAY[picked.id])
RETURNING run.id, run.job, run.run_key, run.scheduled_at, run.attempt, run.retries_left, run.crashes, run.trigger,
          run.payload, run.checkpoint, run.trace_id, clock_timestamp()
