-- The sweeper's one look: leases that are over, whether others own runs, what is ready, when the next is, who waits in vain.
-- It reads live rows only, each state by its own partial index: one condition for two states has none, and would read back
-- through the whole history. However long the queue is, it reads the first rows of each priority (and those before them that
-- this replica may not take): a walk from one priority to the next, as an index that begins with it has no other way to the
-- earliest of all. `next_in` may be that of another's run: then this replica looks in vain, once.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), level AS (
    (SELECT run.priority FROM soloist.run WHERE run.status = 'queued' ORDER BY run.priority LIMIT 1)
    UNION ALL
    SELECT (SELECT run.priority FROM soloist.run WHERE run.status = 'queued' AND run.priority > level.priority
            ORDER BY run.priority LIMIT 1)
    FROM level WHERE level.priority IS NOT NULL
), queued AS MATERIALIZED (
    SELECT COALESCE(bool_or((
               SELECT true FROM soloist.run  -- not EXISTS: that may be answered out of a hash of all that is ready
               WHERE run.status = 'queued' AND run.priority = level.priority AND run.ready_at <= (SELECT now FROM clock)
                 AND (SELECT true FROM soloist.plan_job held JOIN soloist.job ON job.id = held.job
                      WHERE held.generation = %(generation)s::int AND held.job = run.job
                        AND job.spec_hash = held.spec_hash AND job.removed_at IS NULL)
               LIMIT 1)), false) AS ready,
           min((SELECT run.ready_at FROM soloist.run
                WHERE run.status = 'queued' AND run.priority = level.priority AND run.ready_at > (SELECT now FROM clock)
                ORDER BY run.ready_at LIMIT 1)) AS next_at,
           -- whoever may take the others takes them in time: what nobody takes comes to the front
           COALESCE(bool_or((
               SELECT true FROM (SELECT run.job FROM soloist.run
                                 WHERE run.status = 'queued' AND run.priority = level.priority
                                 ORDER BY run.ready_at LIMIT 100) first
               JOIN soloist.job ON job.id = first.job WHERE job.removed_at IS NOT NULL LIMIT 1)), false) AS stale
    FROM level WHERE level.priority IS NOT NULL
), expired AS (
    SELECT array_agg(run.id) AS ids, array_agg(run.claimed_until) AS untils
    FROM soloist.run
    WHERE run.status = 'running' AND run.claimed_until < clock_timestamp()
)
SELECT expired.ids, expired.untils, queued.ready, extract(epoch FROM queued.next_at - clock_timestamp())::float8,
       EXISTS (SELECT FROM soloist.run WHERE run.status = 'running' AND run.claimed_by <> %(me)s::uuid) AS others,
       EXISTS (SELECT FROM soloist.run waiting WHERE waiting.status = 'waiting' AND NOT EXISTS (
                   SELECT FROM soloist.run active
                   WHERE active.job = waiting.job AND active.exclusive AND active.status IN ('queued', 'running'))) AS in_vain,
       queued.stale OR EXISTS (SELECT FROM soloist.run JOIN soloist.job ON job.id = run.job
                  WHERE run.status = 'waiting' AND job.removed_at IS NOT NULL) AS stale,
       clock_timestamp(), pg_postmaster_start_time()
FROM expired, queued
