-- The first schema. Safety lives here: what must not happen is forbidden by a constraint, not by code.

CREATE TABLE soloist.config (
    config_hash   text PRIMARY KEY,                      -- of the file's content, as the version that read it understood it
    generation    int NOT NULL UNIQUE,                   -- order of first sight; an edit back makes it the newest again
    content       text NOT NULL,
    retention     jsonb NOT NULL,                        -- seconds by group, for the purge
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE soloist.job (
    id            int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9-]{1,52}$'),
    spec          jsonb NOT NULL,
    spec_hash     text NOT NULL,
    generation    int NOT NULL,
    watermark     timestamptz NOT NULL,                  -- every tick up to here has a row
    paused_at     timestamptz,
    paused_until  timestamptz,
    paused_by     text,
    paused_reason text,
    removed_at    timestamptz
) WITH (fillfactor = 50);                                -- the watermark moves at each tick: keep those updates HOT

-- Which spec of each job a generation holds: what its replicas may take from the queue.
CREATE TABLE soloist.plan_job (
    generation int NOT NULL REFERENCES soloist.config (generation),
    job        int NOT NULL REFERENCES soloist.job (id),
    spec_hash  text NOT NULL,
    PRIMARY KEY (generation, job)
);

CREATE TABLE soloist.run (
    id                  uuid PRIMARY KEY,                -- UUIDv7 made by the claimer: tells one's own commit after a lost answer
    job                 int NOT NULL REFERENCES soloist.job (id),
    run_key             text NOT NULL,
    scheduled_at        timestamptz NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    trigger             text NOT NULL
        CHECK (trigger IN ('schedule', 'catch_up', 'manual', 'backfill', 'cronjob', 'retry')),
    triggered_by        text,
    retry_of            uuid,
    status              text NOT NULL
        CHECK (status IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'skipped')),
    skip_reason         text CHECK (skip_reason IN ('overlap', 'missed', 'paused', 'stale_config', 'job')),
    exclusive           boolean NOT NULL,
    attempt             int NOT NULL DEFAULT 0,          -- the fence: counted at the claim
    retries_left        int NOT NULL DEFAULT 0,
    crashes             int NOT NULL DEFAULT 0,
    after_crash         text NOT NULL DEFAULT 'rerun' CHECK (after_crash IN ('rerun', 'fail')),
    crash_limit         int NOT NULL DEFAULT 3,
    backoff             float8 NOT NULL DEFAULT 60,      -- seconds; doubles with each crash after the first
    backoff_max         float8 NOT NULL DEFAULT 3600,
    claimed_by          uuid,
    claimed_until       timestamptz,
    ready_at            timestamptz,
    started_at          timestamptz,
    finished_at         timestamptz,
    payload             jsonb,
    priority            int NOT NULL DEFAULT 0,          -- lower comes first
    queue               text,
    concurrency_key     text,
    progress            jsonb,
    checkpoint          jsonb,
    result              jsonb,
    last_error          text,
    cancel_requested_at timestamptz,
    spec_hash           text,
    trace_id            text,
    CONSTRAINT run_once UNIQUE (job, run_key),
    CONSTRAINT run_skipped_says_why CHECK ((status = 'skipped') = (skip_reason IS NOT NULL)),
    CONSTRAINT run_running_is_owned CHECK (status <> 'running' OR (claimed_by IS NOT NULL AND claimed_until IS NOT NULL)),
    CONSTRAINT run_queued_is_ready CHECK (status <> 'queued' OR ready_at IS NOT NULL),
    CONSTRAINT run_terminal_is_finished CHECK ((status IN ('waiting', 'queued', 'running')) = (finished_at IS NULL))
) WITH (fillfactor = 80);

-- Overlap is forbidden by the schema: at most one active run of an exclusive job. A retry that waits is active.
CREATE UNIQUE INDEX run_exclusive ON soloist.run (job) WHERE exclusive AND status IN ('queued', 'running');

-- Partial, on the live states, so that their cost does not grow with the history. None holds claimed_until: renewals stay HOT.
CREATE INDEX run_queued ON soloist.run (priority, ready_at) WHERE status = 'queued';
CREATE INDEX run_running ON soloist.run (job) WHERE status = 'running';
CREATE INDEX run_waiting ON soloist.run (job, scheduled_at) WHERE status = 'waiting';

-- The history of one job, newest first; the id is time-ordered.
CREATE INDEX run_of_job ON soloist.run (job, id);

-- Terminal states never change again; nothing may bring a fence back.
CREATE FUNCTION soloist.run_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'run % is % and terminal states never change', OLD.id, OLD.status USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER run_terminal_stays BEFORE UPDATE OF status, attempt ON soloist.run
    FOR EACH ROW
    WHEN (OLD.finished_at IS NOT NULL AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.attempt <> OLD.attempt))
    EXECUTE FUNCTION soloist.run_guard();

-- No foreign key to run: it is written only by the statement that settles its run, and the check would lock and read that
-- row once more for each (measured: 60 bytes of WAL and a tenth of the settlement). The purge deletes both together.
CREATE TABLE soloist.attempt (
    run          uuid NOT NULL,
    number       int NOT NULL,
    replica      uuid,
    replica_name text,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    outcome      text NOT NULL CHECK (outcome IN
        ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped', 'crashed', 'handed_back', 'lease_lost')),
    error_class  text,
    error_text   text,
    output_tail  text,
    output_bytes bigint,
    exit_code    int,
    cpu          float8,                                 -- seconds
    peak_rss     bigint,                                 -- bytes
    PRIMARY KEY (run, number)
);

CREATE TABLE soloist.replica (
    id           uuid PRIMARY KEY,                       -- new at each process start
    name         text NOT NULL,
    host         text NOT NULL,
    pid          int NOT NULL,
    version      text NOT NULL,
    config_hash  text NOT NULL,
    generation   int NOT NULL,
    tzdata       text NOT NULL,
    clock_offset float8 NOT NULL DEFAULT 0,              -- seconds the replica's clock is ahead of the database's
    seats        int NOT NULL,
    serves       boolean NOT NULL,                       -- ticks and takes work; one that only executes a run has no say in the plan
    fenced_writes int NOT NULL DEFAULT 0,                -- outcomes of this replica that were refused: the run had been taken over
    leases_lost  int NOT NULL DEFAULT 0,                 -- bodies stopped because the run was no longer this replica's
    takeovers    int NOT NULL DEFAULT 0,                 -- runs that this replica took from others
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at   timestamptz
);

CREATE TABLE soloist.audit (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    who    text NOT NULL,
    action text NOT NULL,
    job    text,
    run    uuid,
    why    text
);
