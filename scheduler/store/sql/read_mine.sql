-- Runs that are this replica's, and for how many seconds more. Those of them that no seat knows are orphans of a claim whose answer
-- was lost. The reader asks its seats only after this look: a claim that commits in between is known there already.
SELECT run.id, run.job, run.run_key, run.scheduled_at, run.attempt, run.retries_left, run.crashes, run.trigger,
       run.payload, run.checkpoint, run.trace_id, extract(epoch FROM run.claimed_until - clock_timestamp())::float8
FROM soloist.run
WHERE run.status = 'running' AND run.claimed_by = %(me)s::uuid
