-- One job with all that its row says, and the database's time.
SELECT id, name, spec, spec_hash, watermark, paused_at, paused_until, paused_by, paused_reason, resumed_at, removed_at,
       clock_timestamp()
FROM soloist.job WHERE name = %(job)s::text
