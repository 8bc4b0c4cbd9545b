-- My content's generation, the newest among the live replicas other than me, and the database's time.
SELECT (SELECT generation FROM soloist.config WHERE config_hash = %(config_hash)s::text),
       COALESCE((SELECT max(generation) FROM soloist.replica
                 WHERE serves AND stopped_at IS NULL AND id <> %(me)s::uuid
                   AND seen_at > clock_timestamp() - make_interval(secs => %(silence)s::float8)), 0),
       clock_timestamp()
