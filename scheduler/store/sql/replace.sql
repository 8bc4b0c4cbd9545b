-- For each of these jobs whose newest tick waits: what is active, and the ticks that wait longer, give way to it. What runs is
-- asked to end; its owner hears of it at the next renewal. What has not begun ends here. Level-triggered: asked again, it
-- finds nothing more to do.
-- A run that somebody has locked is left for the next look. In id order, as every write of several rows; see settle for ANY.
WITH newest AS MATERIALIZED (
    SELECT DISTINCT ON (run.job) run.job, run.id, run.scheduled_at
    FROM soloist.run
    WHERE run.status = 'waiting' AND run.job = ANY (%(job)s::int[]) AND run.trigger IN ('schedule', 'catch_up')
    ORDER BY run.job, run.scheduled_at DESC
), older AS MATERIALIZED (
    -- each state by its own index
    SELECT run.id, newest.id AS newer FROM soloist.run JOIN newest ON run.job = newest.job
    WHERE run.status = 'running' AND run.exclusive AND run.cancel_requested_at IS NULL
    UNION ALL
    SELECT run.id, newest.id FROM soloist.run JOIN newest ON run.job = newest.job WHERE run.status = 'queued' AND run.exclusive
    UNION ALL
    SELECT run.id, newest.id FROM soloist.run JOIN newest ON run.job = newest.job
    WHERE run.status = 'waiting' AND run.id <> newest.id AND run.trigger IN ('schedule', 'catch_up')
), given AS MATERIALIZED (
    SELECT run.id, older.newer FROM soloist.run JOIN older ON run.id = ANY (ARRAY[older.id]) WHERE run.finished_at IS NULL
    ORDER BY older.id FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE soloist.run
SET cancel_requested_at = clock_timestamp(),
    status = CASE run.status WHEN 'running' THEN 'running' ELSE 'cancelled' END,
    finished_at = CASE run.status WHEN 'running' THEN NULL ELSE clock_timestamp() END,
    ready_at = NULL,
    result = CASE run.status WHEN 'running' THEN run.result ELSE jsonb_build_object('replaced_by', given.newer) END
FROM given
WHERE run.id = ANY (ARRAY[given.id]) AND run.status IN ('waiting', 'queued', 'running')
RETURNING run.id, run.job, run.status, run.run_key, run.scheduled_at, run.attempt
