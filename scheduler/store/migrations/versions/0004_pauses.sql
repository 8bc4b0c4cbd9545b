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
