-- The run that a job's key names, and whether it has another payload than the one that is asked with, if one is.
SELECT run.id, run.status, run.attempt, replica.name,
       %(payload)s::jsonb IS NOT NULL AND run.payload IS DISTINCT FROM %(payload)s::jsonb
FROM soloist.run JOIN soloist.job ON job.id = run.job
LEFT JOIN soloist.replica ON replica.id = run.claimed_by
WHERE job.name = %(job)s::text AND run.run_key = %(run_key)s::text
