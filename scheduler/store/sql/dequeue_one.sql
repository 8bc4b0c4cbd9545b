-- As dequeue, for one run that is waited for by name. `(SELECT 'queued')`: compared with a bare word, a plan that was made while
-- next to nothing was queued would look for the id in the whole queue.
UPDATE soloist.run
SET status = 'running', attempt = attempt + 1, claimed_by = %(me)s::uuid,
    claimed_until = clock_timestamp() + make_interval(secs => %(lease)s::float8),
    ready_at = NULL, started_at = clock_timestamp()
WHERE id = %(id)s::uuid AND status = (SELECT 'queued') AND ready_at <= clock_timestamp()
RETURNING id, job, run_key, scheduled_at, attempt, retries_left, crashes, trigger, payload, checkpoint, trace_id,
          clock_timestamp()
