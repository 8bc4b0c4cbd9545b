-- A content gets its generation at first sight; a replica that starts with an older one does not make it newer. An edit under
-- a running replica does: %(after)s is the generation that it came from (0: it starts), and what is not known beyond that is
-- new, also where it is an old content once more. Of several replicas with one edit, the first makes the generation.
INSERT INTO soloist.config (config_hash, generation, content, retention)
SELECT %(config_hash)s::text, COALESCE(max(generation), 0) + 1, %(content)s::text, %(retention)s::jsonb FROM soloist.config
HAVING NOT EXISTS (SELECT FROM soloist.config known
                   WHERE known.config_hash = %(config_hash)s::text AND known.generation > %(after)s::int)
