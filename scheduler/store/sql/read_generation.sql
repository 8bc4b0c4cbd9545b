-- My content's generation, the newest among the live replicas other than me, the versions of their zone data, and the
-- database's time.
WITH live AS (
    SELECT generation, tzdata FROM soloist.replica
    WHERE serves AND stopped_at IS NULL AND id <> %(me)s::uuid
      AND seen_at > clock_timestamp() - make_interval(secs => %(silence)s::float8)
)
SELECT (SELECT max(generation) FROM soloist.config WHERE config_hash = %(config_hash)s::text),
       COALESCE((SELECT max(generation) FROM live), 0),
       (SELECT array_agg(DISTINCT tzdata) FROM live),
       clock_timestamp()
