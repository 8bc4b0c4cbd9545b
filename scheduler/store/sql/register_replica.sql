-- Who this replica is; again, with what has changed, when its file is put in force anew.
INSERT INTO soloist.replica (id, name, host, pid, version, config_hash, generation, tzdata, clock_offset, seats,
                             serves, lease)
VALUES (%(id)s::uuid, %(name)s, %(host)s, %(pid)s, %(version)s, %(config_hash)s, %(generation)s, %(tzdata)s,
        %(clock_offset)s, %(seats)s, %(serves)s, %(lease)s)
ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, config_hash = excluded.config_hash,
                               seen_at = clock_timestamp(), stopped_at = NULL
