-- This replica has stopped in good order: others need not wait for its silence.
UPDATE soloist.replica SET stopped_at = clock_timestamp(), seen_at = clock_timestamp() WHERE id = %(me)s::uuid
