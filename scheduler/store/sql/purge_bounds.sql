-- The instant before which a group's runs are expired (-infinity: kept for ever), and the id below which they all lie:
-- an id is a UUIDv7, made before its run finished. Its maker's clock may be fast, hence a day on top; a run by a clock
-- that was further off goes later, once the bound has passed its id.
WITH cutoff AS (
    SELECT coalesce(clock_timestamp() - make_interval(secs => %(succeeded)s::float8), '-infinity') AS succeeded,
           coalesce(clock_timestamp() - make_interval(secs => %(failed)s::float8), '-infinity') AS failed,
           coalesce(clock_timestamp() - make_interval(secs => %(skipped)s::float8), '-infinity') AS skipped
), newest AS (
    SELECT greatest(succeeded, failed, skipped) + interval '1 day' AS at FROM cutoff
)
SELECT cutoff.succeeded::text, cutoff.failed::text, cutoff.skipped::text,
       (lpad(to_hex(greatest(floor(extract(epoch FROM newest.at) * 1000), 0)::bigint), 12, '0') || repeat('0', 20))::uuid AS before
FROM cutoff, newest
