-- The sweeper's one look: leases that are over, whether others own runs, what is ready, when the next is, who waits in vain.
WITH expired AS (
    SELECT array_agg(run.id) AS ids, array_agg(run.claimed_until) AS untils
    FROM soloist.run
    WHERE run.status = 'running' AND run.claimed_until < clock_timestamp()
), queued AS (
    SELECT COALESCE(bool_or(run.ready_at <= clock_timestamp()), false) AS ready,
           extract(epoch FROM min(run.ready_at) FILTER (WHERE run.ready_at > clock_timestamp()) - clock_timestamp())::float8 AS next_in
    FROM soloist.run JOIN soloist.plan_job held ON held.generation = %(generation)s::int AND held.job = run.job
    JOIN soloist.job ON job.id = run.job AND job.spec_hash = held.spec_hash AND job.removed_at IS NULL
    WHERE run.status = 'queued'
)
SELECT expired.ids, expired.untils, queued.ready, queued.next_in,
       EXISTS (SELECT FROM soloist.run WHERE run.status = 'running' AND run.claimed_by <> %(me)s::uuid) AS others,
       EXISTS (SELECT FROM soloist.run waiting WHERE waiting.status = 'waiting' AND NOT EXISTS (
                   SELECT FROM soloist.run active
                   WHERE active.job = waiting.job AND active.exclusive AND active.status IN ('queued', 'running'))) AS in_vain,
       EXISTS (SELECT FROM soloist.run JOIN soloist.job ON job.id = run.job
               WHERE run.status IN ('queued', 'waiting') AND job.removed_at IS NOT NULL) AS stale,
       clock_timestamp()
FROM expired, queued
