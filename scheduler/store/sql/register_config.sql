-- A content gets its generation at first sight; a replica that starts again with an older one does not make it newer.
INSERT INTO soloist.config (config_hash, generation, content, retention)
SELECT %(config_hash)s::text, COALESCE(max(generation), 0) + 1, %(content)s::text, %(retention)s::jsonb FROM soloist.config
ON CONFLICT (config_hash) DO NOTHING
