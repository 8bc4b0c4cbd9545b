-- Pause jobs whose newest runs all ended badly: as many in a row as the spec in force says. What was skipped or cancelled says
-- nothing of the job, and what ended before the last resume is forgiven. Asked after each bad end of a job that wants this;
-- of two at once one pauses, as the other finds it paused.
-- The newest runs are read by the index of the job's history and no further back than they are needed; ordered by the job as
-- well, and BETWEEN, which is no constant to the planner, so that it takes no index of all jobs' runs for that. Rows before and
-- between them that were skipped or have not ended are read too, hence the bound.
WITH failing AS MATERIALIZED (
    SELECT job.id, job.resumed_at, last.number, last.error
    FROM soloist.job
    CROSS JOIN LATERAL (
        SELECT count(*) AS number, bool_and(ended.status IN ('failed', 'timed_out', 'lost')) AS bad,
               min(ended.finished_at) AS since, (array_agg(ended.last_error ORDER BY ended.id DESC))[1] AS error
        FROM (SELECT newest.id, newest.status, newest.finished_at, newest.last_error
              FROM (SELECT run.id, run.status, run.finished_at, run.last_error FROM soloist.run
                    WHERE run.job BETWEEN job.id AND job.id ORDER BY run.job DESC, run.id DESC LIMIT 10000) newest
              WHERE newest.finished_at IS NOT NULL AND newest.status NOT IN ('skipped', 'cancelled')
              LIMIT COALESCE((job.spec ->> 'pause_after_failures')::int, 0)) ended  -- NULL would be no limit
    ) last
    WHERE job.name = ANY (%(job)s::text[]) AND job.paused_at IS NULL AND job.removed_at IS NULL
      AND job.spec ->> 'pause_after_failures' IS NOT NULL
      AND last.number = (job.spec ->> 'pause_after_failures')::int AND last.bad
      AND (job.resumed_at IS NULL OR last.since > job.resumed_at)
), free AS MATERIALIZED (
    SELECT job.id FROM soloist.job JOIN failing ON failing.id = job.id
    WHERE job.paused_at IS NULL AND job.removed_at IS NULL AND job.resumed_at IS NOT DISTINCT FROM failing.resumed_at
    ORDER BY job.id
    FOR NO KEY UPDATE OF job
), paused AS (
    UPDATE soloist.job
    SET paused_at = clock_timestamp(), paused_until = NULL, paused_by = 'soloist',
        paused_reason = CASE failing.number WHEN 1 THEN 'a run failed: ' ELSE failing.number || ' runs in a row failed, the last: ' END
                        || left(COALESCE(failing.error, 'it left no error'), 500)
    FROM failing JOIN free ON free.id = failing.id
    WHERE job.id = failing.id
    RETURNING job.name, job.paused_reason
), noted AS (
    INSERT INTO soloist.audit (who, action, job, why) SELECT 'soloist', 'pause', paused.name, paused.paused_reason FROM paused
), told AS (
    SELECT pg_notify('soloist', 'plan') FROM (SELECT FROM paused LIMIT 1) any_paused
)
SELECT paused.name, paused.paused_reason, (SELECT count(*) FROM told) FROM paused
