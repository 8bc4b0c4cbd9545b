-- Paused jobs whose pause was to end by now; those that somebody has locked are being dealt with.
SELECT id, name, spec, spec_hash, watermark, paused_at, paused_until, paused_by, paused_reason, resumed_at, removed_at,
       clock_timestamp()
FROM soloist.job
WHERE paused_until <= (SELECT clock_timestamp()) AND removed_at IS NULL
ORDER BY id
FOR NO KEY UPDATE SKIP LOCKED
