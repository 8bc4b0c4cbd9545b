-- Runs that are this replica's. Those of them that no seat knows are orphans of a claim whose answer was lost. The reader asks its
-- seats only after this look: a claim that commits in between is known there already.
SELECT run.id, run.attempt FROM soloist.run
WHERE run.status = 'running' AND run.claimed_by = %(me)s::uuid
