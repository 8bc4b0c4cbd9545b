-- Say that this replica lives; learn which generation is in force (the newest among the live), and its rank among them.
WITH me AS (
    UPDATE soloist.replica SET seen_at = clock_timestamp(), clock_offset = %(clock_offset)s::float8, pooled = %(pooled)s,
           fenced_writes = %(fenced_writes)s::int, leases_lost = %(leases_lost)s::int, takeovers = %(takeovers)s::int
    WHERE id = %(me)s::uuid
    RETURNING id, generation
), live AS (
    SELECT replica.id, replica.generation FROM soloist.replica
    WHERE replica.serves AND replica.stopped_at IS NULL AND replica.seen_at > clock_timestamp() - make_interval(secs => %(silence)s::float8)
      AND replica.id <> %(me)s::uuid
    UNION ALL SELECT me.id, me.generation FROM me
)
SELECT (SELECT max(generation) FROM live), (SELECT count(*) FROM live WHERE live.id < %(me)s::uuid),
       (SELECT count(*) FROM live), (SELECT max(generation) FROM soloist.job), clock_timestamp()
FROM me
