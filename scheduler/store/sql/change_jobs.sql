-- A changed spec starts from now: what the old one still owed has been accounted for in this transaction.
-- The prose of an unchanged spec is kept current too; its hash and so its generation stay.
UPDATE soloist.job
SET spec = w.spec::jsonb, spec_hash = w.spec_hash, generation = w.generation, removed_at = NULL,
    watermark = GREATEST(job.watermark, w.watermark)
FROM unnest(%(id)s::int[], %(spec)s::text[], %(spec_hash)s::text[], %(generation)s::int[], %(watermark)s::timestamptz[])
     AS w (id, spec, spec_hash, generation, watermark)
WHERE job.id = w.id
