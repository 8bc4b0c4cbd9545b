-- Jobs seen for the first time, each with the watermark up to which it owes nothing.
INSERT INTO soloist.job (name, spec, spec_hash, generation, watermark)
SELECT w.name, w.spec::jsonb, w.spec_hash, %(generation)s::int, w.watermark
FROM unnest(%(name)s::text[], %(spec)s::text[], %(spec_hash)s::text[], %(watermark)s::timestamptz[])
     AS w (name, spec, spec_hash, watermark)
ORDER BY w.name
