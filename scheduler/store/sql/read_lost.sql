-- What became of ticks that another replica has: the job's watermark now, and who holds the run.
SELECT w.job, w.run_key, job.watermark, job.spec_hash,
       job.paused_at IS NOT NULL OR job.removed_at IS NOT NULL AS at_rest, run.id, run.status, replica.name,
       clock_timestamp()
FROM unnest(%(job)s::int[], %(run_key)s::text[]) AS w (job, run_key)
JOIN soloist.job ON job.id = w.job
LEFT JOIN soloist.run ON run.job = w.job AND run.run_key = w.run_key
LEFT JOIN soloist.replica ON replica.id = run.claimed_by
