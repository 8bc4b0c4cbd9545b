-- Runs that are mine though no seat knows them: their claim was committed and its answer lost. No body has begun.
SELECT run.id, run.attempt FROM soloist.run
WHERE run.status = 'running' AND run.claimed_by = %(me)s::uuid AND run.id <> ALL (%(known)s::uuid[])
