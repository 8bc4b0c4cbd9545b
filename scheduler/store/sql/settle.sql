-- Write how attempts ended, many at once: the run's next state and the attempt's line in the history. Fenced by attempt and
-- owner: a row that does not come back is somebody else's by now, or was ended by this very attempt before.
-- `ended` comes in id order and drives the update, so rows are locked in id order, as every multi-row write does.
-- `was`: compared with a column, not with a word, so that no plan reads all running rows by their partial index instead of
-- these by their ids: that costs running × ended, and is what the planner prefers while few run (measured: 20 times as long).
-- ANY (ARRAY[…]): each run by its id, as no hash can be made of that condition. A plan that was made while there were few runs
-- at all would else read all of them through the primary key, and go on so when there are many.
WITH ended AS MATERIALIZED (
    SELECT *, 'running'::text AS was, clock_timestamp() AS now FROM unnest(
        %(id)s::uuid[], %(attempt)s::int[], %(status)s::text[], %(skip_reason)s::text[], %(ready_in)s::float8[],
        %(spent)s::int[], %(crashed)s::int[], %(result)s::text[], %(outcome)s::text[], %(error_class)s::text[],
        %(error_text)s::text[], %(output_tail)s::text[], %(output_bytes)s::bigint[], %(exit_code)s::int[],
        %(cpu)s::float8[], %(peak_rss)s::bigint[]
    ) AS e (id, attempt, status, skip_reason, ready_in, spent, crashed, result, outcome, error_class, error_text, output_tail,
            output_bytes, exit_code, cpu, peak_rss)
), done AS (
    UPDATE soloist.run
    -- who asked for an end does not want another try
    SET status = CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE ended.status END,
        skip_reason = ended.skip_reason,
        retries_left = GREATEST(run.retries_left - ended.spent, 0),
        crashes = run.crashes + ended.crashed,
        result = ended.result::jsonb,
        last_error = left(ended.error_text, 2000),
        claimed_by = CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NULL THEN NULL ELSE run.claimed_by END,
        claimed_until = CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NULL THEN NULL ELSE run.claimed_until END,
        ready_at = CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NULL
                        THEN ended.now + make_interval(secs => ended.ready_in) END,
        finished_at = CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NULL THEN NULL ELSE ended.now END
    FROM ended
    WHERE run.id = ANY (ARRAY[ended.id]) AND run.attempt = ended.attempt AND run.claimed_by = %(me)s::uuid
      AND run.status = ended.was
    RETURNING run.id, run.job, run.status, run.exclusive, run.started_at, ended.attempt, ended.outcome, ended.error_class,
              ended.error_text, ended.output_tail, ended.output_bytes, ended.exit_code, ended.cpu, ended.peak_rss
), history AS (
    INSERT INTO soloist.attempt (run, number, replica, replica_name, started_at, outcome, error_class, error_text, output_tail,
                                 output_bytes, exit_code, cpu, peak_rss)
    SELECT id, attempt, %(me)s::uuid, %(name)s::text, started_at, outcome, error_class, left(error_text, 8000), output_tail,
           output_bytes, exit_code, cpu, peak_rss
    FROM done
    ON CONFLICT DO NOTHING
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM done WHERE status = 'queued' LIMIT 1) any_queued
)
SELECT done.id, done.attempt, done.job, done.status,
       done.exclusive AND done.status <> 'queued'
           AND EXISTS (SELECT FROM soloist.run later WHERE later.job = done.job AND later.status = 'waiting'),
       (SELECT count(*) FROM told)
FROM done
