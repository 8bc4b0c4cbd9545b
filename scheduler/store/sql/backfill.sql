-- Runs for ticks of the past, a chunk of them, where there is none that was not skipped. A tick whose period or own key is free
-- gets that; one that has a skipped row gets `<key>~2` beside it, as a retry by hand would be, unless somebody retried it. Asked
-- again, or by two at once, each key makes one run. With `dry_run` it only says what it would do.
-- Of an exclusive job they are born waiting, and follow each other as each one ends.
-- own     the run that has the tick's key (or its period's)
-- mark    the row that the tick itself left, if that is another one: it was skipped, so the period's key was not used
-- again   a retry of either
WITH target AS MATERIALIZED (
    SELECT job.id, job.name, job.spec_hash, job.exclusive, job.retries, job.after_crash, job.crash_limit, job.backoff, job.backoff_max
    FROM soloist.job WHERE job.id = %(job)s::int AND job.spec_hash = %(spec_hash)s::text AND job.removed_at IS NULL
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), asked AS MATERIALIZED (
    SELECT * FROM unnest(%(id)s::uuid[], %(run_key)s::text[], %(tick_key)s::text[], %(scheduled_at)s::timestamptz[])
        AS a (id, run_key, tick_key, scheduled_at)
), seen AS MATERIALIZED (
    SELECT asked.*, target.id AS job, own.id AS own, own.status AS own_status, again.id AS again, again.status AS again_status,
           CASE WHEN COALESCE(own.skip_reason, mark.skip_reason) <> 'job' THEN COALESCE(own.id, mark.id) END AS skipped,
           CASE WHEN again.id IS NOT NULL THEN NULL
                WHEN own.id IS NULL THEN asked.run_key
                WHEN own.skip_reason <> 'job' THEN asked.run_key || '~2' END AS free_key
    FROM asked
    CROSS JOIN target
    LEFT JOIN soloist.run own ON own.job = target.id AND own.run_key = asked.run_key
    LEFT JOIN soloist.run mark ON mark.job = target.id AND mark.run_key = asked.tick_key
    LEFT JOIN LATERAL (
        SELECT run.id, run.status FROM soloist.run
        WHERE run.job = target.id AND run.run_key IN (asked.run_key || '~2', asked.tick_key || '~2') LIMIT 1
    ) again ON true
), made AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, triggered_by, retry_of, status, exclusive,
                             retries_left, after_crash, crash_limit, backoff, backoff_max, ready_at, priority, spec_hash)
    SELECT seen.id, target.id, seen.free_key, seen.scheduled_at, clock.now, 'backfill', %(who)s::text, seen.skipped,
           CASE WHEN target.exclusive THEN 'waiting' ELSE 'queued' END, target.exclusive,
           target.retries, target.after_crash, target.crash_limit, target.backoff, target.backoff_max,
           CASE WHEN NOT target.exclusive THEN clock.now END, %(priority)s::int, target.spec_hash
    FROM seen CROSS JOIN target CROSS JOIN clock
    WHERE seen.free_key IS NOT NULL AND seen.scheduled_at <= clock.now AND NOT %(dry_run)s::boolean
    ORDER BY seen.scheduled_at
    ON CONFLICT DO NOTHING
    RETURNING id, status, scheduled_at
), noted AS (
    INSERT INTO soloist.audit (who, action, job, why)
    SELECT %(who)s::text, 'backfill', target.name,
           CASE many.number WHEN 1 THEN '1 run' ELSE many.number || ' runs' END || ' for ticks from '
           || to_char(many.first AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' to '
           || to_char(many.last AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM (SELECT count(*) AS number, min(scheduled_at) AS first, max(scheduled_at) AS last FROM made) many, target
    WHERE many.number > 0
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM made WHERE status = 'queued' LIMIT 1) any_queued
)
SELECT seen.scheduled_at, COALESCE(seen.free_key, seen.run_key) AS run_key,
       CASE WHEN made.id IS NOT NULL THEN 'created'
            WHEN seen.free_key IS NOT NULL AND %(dry_run)s::boolean THEN 'would_create' ELSE 'exists' END,
       COALESCE(made.id, seen.again, seen.own), COALESCE(made.status, seen.again_status, seen.own_status),
       (SELECT count(*) FROM told)
FROM seen LEFT JOIN made ON made.id = seen.id
ORDER BY seen.scheduled_at
