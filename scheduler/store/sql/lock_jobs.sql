-- These jobs, locked in id order, so that no tick of theirs is claimed while another spec is put in force. The others tick on.
SELECT id, name, spec, spec_hash, generation, watermark, removed_at IS NOT NULL, paused_at IS NOT NULL
FROM soloist.job WHERE id = ANY (%(id)s::int[]) ORDER BY id FOR NO KEY UPDATE
