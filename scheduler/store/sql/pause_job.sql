-- Pause a job, or change the pause that it has: who, why and until when are the newest word's, its beginning stays. From here
-- on its ticks get no row until the pause ends; runs that were asked for go on. An end that has come already pauses nothing.
WITH target AS MATERIALIZED (
    SELECT job.id, job.paused_at, job.paused_until, job.paused_by, job.paused_reason, clock_timestamp() AS now,
           COALESCE(%(until)s::timestamptz, clock_timestamp() + make_interval(secs => %(lasting)s::float8)) AS wanted
    FROM soloist.job
    WHERE job.name = %(job)s::text AND job.removed_at IS NULL
    FOR NO KEY UPDATE OF job
), paused AS (
    UPDATE soloist.job
    SET paused_at = COALESCE(job.paused_at, clock_timestamp()), paused_until = target.wanted, paused_by = %(who)s::text,
        paused_reason = %(why)s::text
    FROM target
    WHERE job.id = target.id AND (target.wanted IS NULL OR target.wanted > target.now)
    RETURNING job.id, job.name, job.paused_at, job.paused_until
), noted AS (
    INSERT INTO soloist.audit (who, action, job, why, until)
    SELECT %(who)s::text, 'pause', paused.name, %(why)s::text, paused.paused_until FROM paused
), told AS (
    SELECT pg_notify('soloist', 'plan') FROM paused
)
SELECT paused.paused_at, paused.paused_until, target.paused_at, target.paused_until, target.paused_by, target.paused_reason,
       target.now, (SELECT count(*) FROM told)
FROM target LEFT JOIN paused ON paused.id = target.id
