-- What others must know of a replica to judge whether it is gone, and the locks by which they see it.

ALTER TABLE soloist.replica
    ADD COLUMN lease  float8  NOT NULL DEFAULT 15,       -- seconds; how often it renews follows from it
    ADD COLUMN pooled boolean NOT NULL DEFAULT false;    -- a pooler stands between: no presence lock, the lease alone tells

-- The session advisory locks of this database. pg_locks splits a 64-bit key in two; here it is whole again.
CREATE VIEW soloist.held_lock AS
    SELECT lock.pid, (lock.classid::bigint << 32) | lock.objid::bigint AS key
    FROM pg_locks lock
    WHERE lock.locktype = 'advisory' AND lock.objsubid = 1 AND lock.granted
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- By its presence lock a replica's dedicated session is known: the last eight bytes of its id, which are random.
CREATE FUNCTION soloist.presence_key(replica uuid) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ('x' || right(replace(replica::text, '-', ''), 16))::bit(64)::bigint;

-- The lock of a guarded job: a stable digest of its name under the schema's.
CREATE FUNCTION soloist.job_key(job text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ('x' || left(encode(sha256(convert_to('soloist.' || job, 'UTF8')), 'hex'), 16))::bit(64)::bigint;
