-- Write how attempts ended, many at once: the run's next state and the attempt's line in the history. Fenced by attempt and
-- owner: a row that does not come back is somebody else's by now, or was ended by this very attempt before.
-- Rows are locked in id order, as every multi-row write does, so that two writers never wait for each other crosswise.
WITH ended AS MATERIALIZED (
    SELECT * FROM unnest(
        %(id)s::uuid[], %(attempt)s::int[], %(status)s::text[], %(skip_reason)s::text[], %(ready_in)s::float8[],
        %(spent)s::int[], %(crashed)s::int[], %(result)s::text[], %(outcome)s::text[], %(error_class)s::text[],
        %(error_text)s::text[], %(output_tail)s::text[], %(output_bytes)s::bigint[], %(exit_code)s::int[],
        %(cpu)s::float8[], %(peak_rss)s::bigint[]
    ) AS e (id, attempt, status, skip_reason, ready_in, spent, crashed, result, outcome, error_class, error_text, output_tail,
            output_bytes, exit_code, cpu, peak_rss)
), mine AS MATERIALIZED (
    SELECT run.id,
           -- who asked for an end does not want another try
           CASE WHEN ended.status = 'queued' AND run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE ended.status END AS status
    FROM soloist.run JOIN ended ON ended.id = run.id AND ended.attempt = run.attempt
    WHERE run.claimed_by = %(me)s::uuid AND run.status = 'running'
    ORDER BY run.id
    FOR NO KEY UPDATE OF run
), done AS (
    UPDATE soloist.run
    SET status = mine.status,
        skip_reason = ended.skip_reason,
        retries_left = GREATEST(run.retries_left - ended.spent, 0),
        crashes = run.crashes + ended.crashed,
        result = ended.result::jsonb,
        last_error = left(ended.error_text, 2000),
        claimed_by = CASE WHEN mine.status = 'queued' THEN NULL ELSE run.claimed_by END,
        claimed_until = CASE WHEN mine.status = 'queued' THEN NULL ELSE run.claimed_until END,
        ready_at = CASE WHEN mine.status = 'queued' THEN clock_timestamp() + make_interval(secs => ended.ready_in) END,
        finished_at = CASE WHEN mine.status = 'queued' THEN NULL ELSE clock_timestamp() END
    FROM mine JOIN ended ON ended.id = mine.id
    WHERE run.id = mine.id
    RETURNING run.id, run.job, run.status, run.exclusive, run.started_at
), history AS (
    INSERT INTO soloist.attempt (run, number, replica, replica_name, started_at, outcome, error_class, error_text, output_tail,
                                 output_bytes, exit_code, cpu, peak_rss)
    SELECT done.id, ended.attempt, %(me)s::uuid, %(name)s::text, done.started_at, ended.outcome, ended.error_class,
           left(ended.error_text, 8000), ended.output_tail, ended.output_bytes, ended.exit_code, ended.cpu, ended.peak_rss
    FROM done JOIN ended ON ended.id = done.id
    ORDER BY done.id
    ON CONFLICT DO NOTHING
), told AS (
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM done WHERE status = 'queued' LIMIT 1) any_queued
)
SELECT done.id, done.job, done.status,
       done.exclusive AND done.status <> 'queued'
           AND EXISTS (SELECT FROM soloist.run later WHERE later.job = done.job AND later.status = 'waiting'),
       (SELECT count(*) FROM told)
FROM done
