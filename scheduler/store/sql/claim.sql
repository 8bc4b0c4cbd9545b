-- Claim a chunk of due ticks: one autocommit statement, at most one replica wins each job.
--
-- won     the job rows as this replica last saw them (same watermark, same spec), locked in id order. SKIP LOCKED: losers wait
--         for nobody and write nothing. FOR NO KEY UPDATE: an open transaction that enqueued a run of the job (and so holds
--         a key share on it) does not make the job invisible here.
-- before  jobs of which a tick waits already. Between the end of a run and the promotion of the next nothing is active, and the
--         overlap index would let anybody in: a tick that may wait does not overtake those that do.
-- ins     the ticks that are due by the database's clock. The instant is read once: a tick that came due between two looks
--         would seem refused by the overlap index. A row that stands for many ticks (`note`) has the key of their stretch where
--         its own is that of a run that somebody asked for: it stands for itself alone.
-- refused what the overlap index would not take, or `before` holds back: a row all the same, skipped or waiting, so that the tick is accounted for.
--         `one` waits if no other tick of its job does, nor one before it in this very claim.
-- Membership in what a part returned is asked with NOT IN, which hashes; NOT EXISTS would compare each with each, because
-- the planner takes the parts for tiny. For the same reason the answer is one row of arrays.
-- moved   the watermark, only where each due tick has a row by now. A watermark that passes a tick without one loses it.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), want AS MATERIALIZED (
    SELECT * FROM unnest(%(job)s::int[], %(seen)s::timestamptz[], %(spec_hash)s::text[]) AS w (job, seen, spec_hash)
), due AS MATERIALIZED (
    SELECT * FROM unnest(
        %(due_job)s::int[], %(id)s::uuid[], %(run_key)s::text[], %(tick_key)s::text[], %(scheduled_at)s::timestamptz[],
        %(status)s::text[], %(skip_reason)s::text[], %(if_blocked)s::text[], %(trigger)s::text[], %(note)s::text[],
        %(delay)s::float8[]
    ) AS d (job, id, run_key, tick_key, scheduled_at, status, skip_reason, if_blocked, trigger, note, delay)
), won AS MATERIALIZED (
    SELECT job.id, job.exclusive, job.spec_hash, job.retries, job.after_crash, job.crash_limit, job.backoff, job.backoff_max
    FROM soloist.job
    JOIN want ON want.job = job.id AND want.seen = job.watermark AND want.spec_hash = job.spec_hash
    WHERE job.paused_at IS NULL AND job.removed_at IS NULL
    ORDER BY job.id
    FOR NO KEY UPDATE OF job SKIP LOCKED
), before AS MATERIALIZED (
    SELECT won.id AS job, first.id
    FROM won CROSS JOIN LATERAL (
        SELECT old.id FROM soloist.run old
        WHERE old.job = won.id AND old.status = 'waiting' AND old.trigger IN ('schedule', 'catch_up')
        ORDER BY old.scheduled_at LIMIT 1
    ) first
), ins AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, status, skip_reason, exclusive, attempt,
                             retries_left, after_crash, crash_limit, backoff, backoff_max, claimed_by, claimed_until,
                             ready_at, started_at, finished_at, result, spec_hash)
    SELECT due.id, due.job,
           CASE WHEN due.note IS NOT NULL
                 AND (SELECT old.trigger NOT IN ('schedule', 'catch_up') FROM soloist.run old
                      WHERE old.job = due.job AND old.run_key = due.run_key) THEN due.tick_key ELSE due.run_key END,
           due.scheduled_at, clock.now, due.trigger, due.status, due.skip_reason,
           won.exclusive, CASE due.status WHEN 'running' THEN 1 ELSE 0 END,
           won.retries, won.after_crash, won.crash_limit, won.backoff, won.backoff_max,
           CASE due.status WHEN 'running' THEN %(me)s::uuid END,
           CASE due.status WHEN 'running' THEN clock.now + make_interval(secs => %(lease)s::float8) END,
           CASE due.status WHEN 'queued' THEN GREATEST(clock.now, due.scheduled_at + make_interval(secs => due.delay)) END,
           CASE due.status WHEN 'running' THEN clock.now END,
           CASE due.status WHEN 'skipped' THEN clock.now END,
           due.note::jsonb, won.spec_hash
    FROM due JOIN won ON won.id = due.job, clock
    WHERE due.scheduled_at <= clock.now
      AND NOT (due.if_blocked IN ('one', 'waiting') AND due.status <> 'skipped' AND won.exclusive
               AND due.job IN (SELECT before.job FROM before))
    ORDER BY due.job, due.scheduled_at
    ON CONFLICT DO NOTHING
    RETURNING id, job, status
), blocked AS (
    SELECT due.id, due.job, due.run_key, due.tick_key, due.scheduled_at, due.trigger, won.retries, won.after_crash,
           won.crash_limit, won.backoff, won.backoff_max, won.spec_hash,
           CASE WHEN due.if_blocked <> 'one' THEN due.if_blocked
                WHEN due.job IN (SELECT before.job FROM before)
                  OR EXISTS (SELECT FROM due earlier
                             WHERE earlier.job = due.job AND earlier.scheduled_at < due.scheduled_at
                               AND earlier.if_blocked IN ('one', 'waiting') AND earlier.status <> 'skipped'
                               AND earlier.id NOT IN (SELECT ins.id FROM ins)) THEN 'skipped'
                ELSE 'waiting' END AS becomes
    FROM due JOIN won ON won.id = due.job, clock
    WHERE due.scheduled_at <= clock.now AND due.status <> 'skipped' AND won.exclusive
      AND due.id NOT IN (SELECT ins.id FROM ins)
      AND NOT EXISTS (SELECT FROM soloist.run old WHERE old.job = due.job AND old.run_key = due.run_key)
), refused AS (
    INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, status, skip_reason, exclusive,
                             retries_left, after_crash, crash_limit, backoff, backoff_max, finished_at, result, spec_hash)
    SELECT blocked.id, blocked.job, CASE becomes WHEN 'skipped' THEN blocked.tick_key ELSE blocked.run_key END,
           blocked.scheduled_at, clock.now, blocked.trigger, becomes, CASE becomes WHEN 'skipped' THEN 'overlap' END, true,
           blocked.retries, blocked.after_crash, blocked.crash_limit, blocked.backoff, blocked.backoff_max,
           CASE becomes WHEN 'skipped' THEN clock.now END,
           -- by one that was there before, or by a tick of this very claim, which is not in the table yet, or that waits
           (SELECT jsonb_build_object('blocked_by', active.id) FROM (
                SELECT old.id FROM soloist.run old
                WHERE old.job = blocked.job AND old.exclusive AND old.status IN ('queued', 'running')
                UNION ALL
                SELECT ins.id FROM ins WHERE ins.job = blocked.job AND ins.status IN ('queued', 'running')
                UNION ALL
                SELECT before.id FROM before WHERE before.job = blocked.job) active LIMIT 1),
           blocked.spec_hash
    FROM blocked, clock
    ORDER BY blocked.job, blocked.scheduled_at
    ON CONFLICT DO NOTHING
    RETURNING id, job, status, result
), made AS (
    SELECT id, job, status, NULL::jsonb AS result FROM ins UNION ALL SELECT id, job, status, result FROM refused
), open AS (
    SELECT DISTINCT due.job FROM due
    WHERE due.id NOT IN (SELECT made.id FROM made)
      AND NOT EXISTS (SELECT FROM soloist.run old
                      WHERE old.job = due.job AND old.run_key IN (due.run_key, due.tick_key))
), moved AS (
    UPDATE soloist.job SET watermark = upto.at
    FROM (SELECT due.job, max(due.scheduled_at) AS at FROM due JOIN won ON won.id = due.job GROUP BY due.job) upto
    WHERE job.id = upto.job AND upto.job NOT IN (SELECT open.job FROM open)
    RETURNING job.id
), told AS (
    -- other replicas may have a seat for what was born queued; only then, as a notification serialises commits
    SELECT pg_notify('soloist', 'run') FROM (SELECT FROM made WHERE status = 'queued' LIMIT 1) any_queued
)
SELECT (SELECT array_agg(moved.id) FROM moved),
       made.jobs, made.ids, made.statuses, made.blockers, clock.now, (SELECT count(*) FROM told)
FROM clock, (SELECT array_agg(job) AS jobs, array_agg(id) AS ids, array_agg(status) AS statuses,
                    array_agg(result ->> 'blocked_by') AS blockers FROM made) made
