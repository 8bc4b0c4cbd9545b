-- Every job, to compare a plan with. Nothing is locked: only who holds the lock of the table of configs changes a job's spec.
SELECT id, name, spec, spec_hash, generation, watermark, removed_at IS NOT NULL, paused_at IS NOT NULL
FROM soloist.job ORDER BY id
