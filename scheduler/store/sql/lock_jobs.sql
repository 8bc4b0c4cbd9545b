-- Every job, locked in id order, so that no tick is claimed while a new plan is put in force.
SELECT id, name, spec, spec_hash, generation, watermark, removed_at IS NOT NULL, paused_at IS NOT NULL
FROM soloist.job ORDER BY id FOR NO KEY UPDATE
