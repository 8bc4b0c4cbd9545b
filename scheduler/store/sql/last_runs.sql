-- The last run of each job that was not skipped.
SELECT job.name, last.run_key, last.status, replica.name, last.finished_at
FROM soloist.job
CROSS JOIN LATERAL (
    SELECT run.run_key, run.status, run.claimed_by, run.finished_at
    FROM soloist.run WHERE run.job = job.id AND run.status <> 'skipped' ORDER BY run.id DESC LIMIT 1
) last
LEFT JOIN soloist.replica ON replica.id = last.claimed_by
WHERE job.id = ANY (%(job)s::int[])
