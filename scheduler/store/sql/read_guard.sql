-- Who holds a job's lock: its backend, the replica if it is one of ours, and whether that replica owns a running run of the job.
SELECT guard.pid, replica.name,
       EXISTS (SELECT FROM soloist.run JOIN soloist.job ON job.id = run.job
               WHERE job.name = %(job)s AND run.status = 'running' AND run.claimed_by = replica.id)
FROM soloist.held_lock guard
LEFT JOIN soloist.held_lock presence ON presence.pid = guard.pid AND presence.key <> guard.key
LEFT JOIN soloist.replica ON soloist.presence_key(replica.id) = presence.key
WHERE guard.key = soloist.job_key(%(job)s)
ORDER BY replica.name NULLS LAST
LIMIT 1
