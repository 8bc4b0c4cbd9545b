-- Runs that a renewal or a settlement did not touch: still held (only locked), ended by this very attempt, or somebody else's.
SELECT run.id, asked.attempt, run.status,
       run.status = 'running' AND run.attempt = asked.attempt AND run.claimed_by = %(me)s::uuid,
       -- not EXISTS: that may be answered out of a hash of the whole history
       (SELECT true FROM soloist.attempt
        WHERE attempt.run = asked.id AND attempt.number = asked.attempt AND attempt.replica = %(me)s::uuid
          AND attempt.outcome <> 'lease_lost') IS TRUE
FROM unnest(%(id)s::uuid[], %(attempt)s::int[]) AS asked (id, attempt)
JOIN soloist.run ON run.id = ANY (ARRAY[asked.id])  -- each by its id: this is no condition for a hash of all runs
