-- One run asked for by name: by a person, an application, a CronJob's pod, a retry by hand. Born `running` when the asker runs
-- it itself (`me`), else `queued`; refused by the overlap index: `if_blocked`. A key that exists gives back the run it names.
-- What a person asked for (`action`) has a line in the audit. What `heeds_pause` (a tick) is not made while the job is paused:
-- the row at the pause's end counts it.
WITH target AS MATERIALIZED (
    SELECT job.id, job.spec_hash, job.exclusive, job.retries, job.after_crash, job.crash_limit, job.backoff, job.backoff_max,
           job.paused_at IS NOT NULL AND %(heeds_pause)s::bool AS held, job.paused_by, job.paused_reason
    FROM soloist.job WHERE job.name = %(job)s::text AND job.removed_at IS NULL
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), fresh AS MATERIALIZED (
    SELECT %(id)s::uuid AS id, target.id AS job, %(run_key)s::text AS run_key,
           COALESCE(%(scheduled_at)s::timestamptz, clock.now) AS scheduled_at, clock.now AS created_at,
           %(trigger)s::text AS trigger, %(triggered_by)s::text AS triggered_by, %(retry_of)s::uuid AS retry_of,
           target.exclusive, target.retries AS retries_left, target.after_crash, target.crash_limit, target.backoff,
           target.backoff_max,
           %(payload)s::jsonb AS payload, target.spec_hash, clock.now
    FROM target, clock
    WHERE COALESCE(%(scheduled_at)s::timestamptz, clock.now) <= clock.now AND NOT target.held
), ins AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, triggered_by, retry_of, exclusive, retries_left,
                             after_crash, crash_limit, backoff, backoff_max, payload, spec_hash,
                             status, attempt, claimed_by, claimed_until, ready_at, started_at)
    SELECT id, job, run_key, scheduled_at, created_at, trigger, triggered_by, retry_of, exclusive, retries_left,
           after_crash, crash_limit, backoff, backoff_max, payload, spec_hash,
           CASE WHEN %(me)s::uuid IS NULL THEN 'queued' ELSE 'running' END, CASE WHEN %(me)s::uuid IS NULL THEN 0 ELSE 1 END,
           %(me)s::uuid, CASE WHEN %(me)s::uuid IS NOT NULL THEN now + make_interval(secs => %(lease)s::float8) END,
           CASE WHEN %(me)s::uuid IS NULL THEN now END, CASE WHEN %(me)s::uuid IS NOT NULL THEN now END
    FROM fresh
    ON CONFLICT DO NOTHING
    RETURNING id, status
), refused AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, triggered_by, retry_of, exclusive, retries_left,
                             after_crash, crash_limit, backoff, backoff_max, payload, spec_hash,
                             status, skip_reason, finished_at)
    SELECT id, job, CASE %(if_blocked)s::text WHEN 'skipped' THEN %(tick_key)s::text ELSE run_key END,
           scheduled_at, created_at, trigger, triggered_by, retry_of, exclusive, retries_left,
           after_crash, crash_limit, backoff, backoff_max, payload, spec_hash,
           %(if_blocked)s::text, CASE %(if_blocked)s::text WHEN 'skipped' THEN 'overlap' END,
           CASE %(if_blocked)s::text WHEN 'skipped' THEN now END
    FROM fresh
    WHERE exclusive AND NOT EXISTS (SELECT FROM ins)
      AND NOT EXISTS (SELECT FROM soloist.run old WHERE old.job = fresh.job AND old.run_key = fresh.run_key)
    ON CONFLICT DO NOTHING
    RETURNING id, status
), noted AS (
    INSERT INTO soloist.audit (who, action, job, run)
    SELECT %(triggered_by)s::text, %(action)s::text, %(job)s::text, made.id
    FROM (SELECT id FROM ins UNION ALL SELECT id FROM refused) made
    WHERE %(action)s::text IS NOT NULL
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM ins WHERE status = 'queued') any_queued
)
SELECT target.id AS job, made.id, made.status, target.held, target.paused_by, target.paused_reason, (SELECT count(*) FROM told)
FROM target LEFT JOIN (
    SELECT id, status FROM ins UNION ALL SELECT id, status FROM refused
    -- made before, and the answer was lost: what this statement has inserted itself is not to be seen here
    UNION ALL SELECT id, status FROM soloist.run WHERE run.id = %(id)s::uuid
) made ON true
