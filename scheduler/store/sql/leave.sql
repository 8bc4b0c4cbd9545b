-- This replica has stopped in good order: others need not wait for its silence.
UPDATE soloist.replica SET stopped_at = clock_timestamp(), seen_at = clock_timestamp(),
    fenced_writes = %(fenced_writes)s::int, leases_lost = %(leases_lost)s::int, takeovers = %(takeovers)s::int
WHERE id = %(me)s::uuid
