-- Whether an expired run is left beyond `after`.
SELECT EXISTS (
    SELECT FROM soloist.run
    WHERE id > %(after)s::uuid AND id < %(before)s::uuid
      AND soloist.is_past(status, run_key, scheduled_at, finished_at,
                          %(succeeded)s::timestamptz, %(failed)s::timestamptz, %(skipped)s::timestamptz, clock_timestamp())
)
