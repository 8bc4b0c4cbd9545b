-- What this generation holds, and away with what no replica has held for a day.
WITH old AS (
    DELETE FROM soloist.plan_job
    WHERE generation <> %(generation)s::int AND NOT EXISTS (
        SELECT FROM soloist.replica
        WHERE replica.generation = plan_job.generation AND replica.stopped_at IS NULL
          AND replica.seen_at > clock_timestamp() - interval '1 day')
)
INSERT INTO soloist.plan_job (generation, job, spec_hash)
SELECT %(generation)s::int, job.id, w.spec_hash
FROM unnest(%(name)s::text[], %(spec_hash)s::text[]) AS w (name, spec_hash)
JOIN soloist.job ON job.name = w.name
ORDER BY job.id
ON CONFLICT (generation, job) DO NOTHING
