-- The run that a job's key names.
SELECT run.id, run.status, run.attempt, replica.name
FROM soloist.run JOIN soloist.job ON job.id = run.job
LEFT JOIN soloist.replica ON replica.id = run.claimed_by
WHERE job.name = %(job)s::text AND run.run_key = %(run_key)s::text
