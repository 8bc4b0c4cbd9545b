-- End the session of a replica that holds a job's lock and owns no running run of it: it is frozen, and was overtaken.
SELECT pg_terminate_backend(guard.pid)
FROM soloist.held_lock guard
JOIN soloist.held_lock presence ON presence.pid = guard.pid
JOIN soloist.replica ON soloist.presence_key(replica.id) = presence.key
WHERE guard.key = soloist.job_key(%(job)s) AND guard.pid = %(pid)s::int
  AND NOT EXISTS (SELECT FROM soloist.run JOIN soloist.job ON job.id = run.job
                  WHERE job.name = %(job)s AND run.status = 'running' AND run.claimed_by = replica.id)
