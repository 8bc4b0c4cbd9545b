-- The jobs as they stand, to tick by.
SELECT id, name, spec_hash, generation, watermark, paused_at IS NOT NULL, removed_at IS NOT NULL,
       paused_until, paused_by, paused_reason
FROM soloist.job WHERE %(name)s::text[] IS NULL OR name = ANY (%(name)s::text[]) ORDER BY id
