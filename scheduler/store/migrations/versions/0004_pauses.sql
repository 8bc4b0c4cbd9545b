-- Failures in a row are counted from the last resume on: what led to a pause must not lead to the next one at once.
ALTER TABLE soloist.job ADD COLUMN resumed_at timestamptz;

-- Every overlap policy but `allow` lets one run be active at a time.
CREATE OR REPLACE FUNCTION soloist.job_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.exclusive := COALESCE(NEW.spec ->> 'overlap', 'skip') <> 'allow';
    NEW.retries := COALESCE((NEW.spec -> 'retry' ->> 'attempts')::int, 1) - 1;
    NEW.after_crash := COALESCE(NEW.spec ->> 'after_crash', 'rerun');
    NEW.crash_limit := COALESCE((NEW.spec ->> 'crash_limit')::int, 3);
    NEW.backoff := COALESCE((NEW.spec -> 'retry' ->> 'backoff')::float8, 60);
    NEW.backoff_max := COALESCE((NEW.spec -> 'retry' ->> 'max')::float8, 3600);
    RETURN NEW;
END $$;

-- What was done to a job by hand, newest first: whoever asks why nothing ran on a day looks here.
CREATE INDEX audit_of_job ON soloist.audit (job, at);

-- For a pause: until when it was meant.
ALTER TABLE soloist.audit ADD COLUMN until timestamptz;

-- Pauses that end by themselves are looked for again and again. Partial, and of no column that a tick moves: those stay HOT.
CREATE INDEX job_paused_until ON soloist.job (paused_until) WHERE paused_until IS NOT NULL;

-- One content may have several generations: a running replica whose file is edited back to an older one makes it the newest
-- again, while a replica that merely starts with it does not.
ALTER TABLE soloist.config DROP CONSTRAINT config_pkey;
CREATE INDEX config_of_hash ON soloist.config (config_hash, generation);

-- Why a replica's edited file is not in use there, in its own words; NULL: it is.
ALTER TABLE soloist.replica ADD COLUMN file_problem text;

-- Whether a run may be deleted, by the instant before which its group is past its retention. A run that stands for a period
-- (`once_per`) stays until that is over in every zone, however short the retention: without it the period's next tick would run.
CREATE FUNCTION soloist.is_past(status text, run_key text, scheduled_at timestamptz, finished_at timestamptz,
                                succeeded timestamptz, failed timestamptz, skipped timestamptz, now timestamptz)
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN finished_at < CASE status WHEN 'succeeded' THEN succeeded WHEN 'skipped' THEN skipped ELSE failed END
       AND scheduled_at < now - CASE WHEN run_key LIKE '____-__-__' THEN interval '48 hours'
                                     WHEN run_key LIKE '____-W__' THEN interval '192 hours'
                                     WHEN run_key LIKE '____-__' THEN interval '768 hours'
                                     ELSE interval '-1000 years' END;
