-- Take runs from an owner whose lease is over, or (`gone`) whose presence lock is: one UPDATE whose policy is in the row's own
-- columns. It repeats the `claimed_until` that was seen, so that a renewal in between wins. The attempt's line is written for
-- the owner who cannot.
-- ANY (ARRAY[…]): each run by its id; see settle, and renew for the order.
WITH seen AS MATERIALIZED (
    SELECT * FROM unnest(%(id)s::uuid[], %(until)s::timestamptz[]) AS s (id, until)
), theirs AS MATERIALIZED (
    SELECT run.id, run.claimed_by, run.attempt, run.started_at,
           CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                WHEN run.after_crash = 'fail' THEN 'lost'
                WHEN run.crashes + 1 >= run.crash_limit THEN 'failed'
                ELSE 'queued' END AS status
    FROM soloist.run JOIN seen ON run.id = ANY (ARRAY[seen.id]) AND seen.until = run.claimed_until
    WHERE run.status = 'running' AND (%(gone)s OR run.claimed_until < clock_timestamp())
    ORDER BY seen.id
    FOR NO KEY UPDATE OF run SKIP LOCKED
), taken AS (
    UPDATE soloist.run
    SET status = theirs.status,
        crashes = run.crashes + 1,
        last_error = CASE WHEN %(gone)s THEN 'the replica of attempt ' || run.attempt || ' is gone: its session has ended'
                          ELSE 'the lease of attempt ' || run.attempt || ' was over: its replica died, froze or lost contact' END,
        claimed_by = CASE WHEN theirs.status = 'queued' THEN NULL ELSE run.claimed_by END,
        claimed_until = NULL,
        ready_at = CASE WHEN theirs.status = 'queued' THEN clock_timestamp() + make_interval(secs =>
            CASE WHEN run.crashes = 0 THEN 0.0
                 ELSE LEAST(run.backoff_max, run.backoff * 2.0 ^ LEAST(run.crashes - 1, 60)) * (0.8 + 0.4 * random()) END) END,
        finished_at = CASE WHEN theirs.status = 'queued' THEN NULL ELSE clock_timestamp() END
    FROM theirs
    WHERE run.id = ANY (ARRAY[theirs.id])
    RETURNING run.id, run.job, run.run_key, run.scheduled_at, run.attempt, run.status, run.last_error
), history AS (
    INSERT INTO soloist.attempt (run, number, replica, replica_name, started_at, outcome, error_text)
    SELECT theirs.id, theirs.attempt, theirs.claimed_by, replica.name, theirs.started_at, 'lease_lost', taken.last_error
    FROM theirs JOIN taken ON taken.id = theirs.id LEFT JOIN soloist.replica ON replica.id = theirs.claimed_by
    ORDER BY theirs.id
    ON CONFLICT DO NOTHING
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM taken WHERE status = 'queued' LIMIT 1) any_queued
)
SELECT taken.id, job.spec ->> 'pause_after_failures' IS NOT NULL, job.name, taken.run_key, taken.scheduled_at, taken.attempt,
       taken.status, replica.name, taken.last_error, (SELECT count(*) FROM told)
FROM taken
JOIN soloist.job ON job.id = taken.job
JOIN theirs ON theirs.id = taken.id
LEFT JOIN soloist.replica ON replica.id = theirs.claimed_by
