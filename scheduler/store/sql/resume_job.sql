-- End a pause, or (`ends` false) count what it has taken so far, as its job's spec is about to change. Its ticks, those from the
-- watermark to `upto`, have one row that says how many they were; the watermark stands at `upto`, so none of them is due. The pause
-- of a removed job does not end; it may have ticks from before. The row has the newest tick's key, or where that tick has a run of
-- its own (somebody asked for it) the key of the whole stretch; see claim. Nothing is done where the job is not as it was seen when
-- they were counted: then it is read and counted afresh. So of two at once one does it.
WITH target AS MATERIALIZED (
    SELECT job.id, job.name, job.exclusive, job.spec_hash
    FROM soloist.job
    WHERE job.id = %(job)s::int AND job.paused_at = %(paused_at)s::timestamptz
      AND job.paused_until IS NOT DISTINCT FROM %(paused_until)s::timestamptz
      AND job.watermark = %(seen)s::timestamptz AND job.spec_hash = %(spec_hash)s::text
      AND (job.removed_at IS NULL OR NOT %(ends)s::bool)
    FOR NO KEY UPDATE OF job
), counted AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, skip_reason, exclusive, finished_at, result, spec_hash)
    SELECT %(id)s::uuid, target.id,
           CASE WHEN EXISTS (SELECT FROM soloist.run old WHERE old.job = target.id AND old.run_key = %(run_key)s::text)
                THEN %(tick_key)s::text ELSE %(run_key)s::text END, %(scheduled_at)s::timestamptz, 'schedule', 'skipped', 'paused',
           target.exclusive, clock_timestamp(), %(note)s::jsonb, target.spec_hash
    FROM target WHERE %(run_key)s::text IS NOT NULL
    ON CONFLICT DO NOTHING
), resumed AS (
    UPDATE soloist.job
    SET watermark = GREATEST(job.watermark, %(upto)s::timestamptz),
        resumed_at = CASE WHEN %(ends)s::bool THEN clock_timestamp() ELSE job.resumed_at END,
        paused_at = CASE WHEN NOT %(ends)s::bool THEN job.paused_at END,
        paused_until = CASE WHEN NOT %(ends)s::bool THEN job.paused_until END,
        paused_by = CASE WHEN NOT %(ends)s::bool THEN job.paused_by END,
        paused_reason = CASE WHEN NOT %(ends)s::bool THEN job.paused_reason END
    FROM target WHERE job.id = target.id
    RETURNING job.id
), noted AS (
    INSERT INTO soloist.audit (who, action, job, why) SELECT %(who)s::text, 'resume', target.name, %(why)s::text
    FROM target WHERE %(ends)s::bool
), told AS (
    SELECT pg_notify('soloist', 'plan') FROM target WHERE %(ends)s::bool
)
SELECT resumed.id, (SELECT count(*) FROM told) FROM resumed
