-- Of these runs, whose leases are over: end the session of an owner that still holds the lock of its run's job. It is frozen for
-- good, or it would have renewed; its body has obeyed the trust deadline by now.
SELECT run.id, pg_terminate_backend(guard.pid)
FROM unnest(%(id)s::uuid[]) AS asked (id)
JOIN soloist.run ON run.id = asked.id AND run.status = 'running' AND run.claimed_until < clock_timestamp()
JOIN soloist.job ON job.id = run.job
JOIN soloist.held_lock guard ON guard.key = soloist.job_key(job.name)
JOIN soloist.held_lock presence ON presence.pid = guard.pid AND presence.key = soloist.presence_key(run.claimed_by)
