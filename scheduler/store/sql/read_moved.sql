-- Which of these jobs are no longer as this replica saw them: another replica has claimed their ticks, or they are not ours to
-- tick. A look costs a fraction of a claim that is lost, on both sides. One row of arrays: many rows cost more to read.
SELECT array_agg(job.id), array_agg(job.watermark),
       array_agg(job.spec_hash <> w.spec_hash OR job.paused_at IS NOT NULL OR job.removed_at IS NOT NULL)
FROM unnest(%(job)s::int[], %(seen)s::timestamptz[], %(spec_hash)s::text[]) AS w (job, seen, spec_hash)
JOIN soloist.job ON job.id = w.job
WHERE job.watermark <> w.seen OR job.spec_hash <> w.spec_hash OR job.paused_at IS NOT NULL OR job.removed_at IS NOT NULL
