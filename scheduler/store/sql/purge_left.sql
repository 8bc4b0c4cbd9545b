-- Whether an expired run is left beyond `after`.
SELECT EXISTS (
    SELECT FROM soloist.run
    WHERE id > %(after)s::uuid AND id < %(before)s::uuid
      AND finished_at < CASE status
          WHEN 'succeeded' THEN %(succeeded)s::timestamptz
          WHEN 'skipped' THEN %(skipped)s::timestamptz
          WHEN 'failed' THEN %(failed)s::timestamptz
          WHEN 'timed_out' THEN %(failed)s::timestamptz
          WHEN 'cancelled' THEN %(failed)s::timestamptz
          WHEN 'lost' THEN %(failed)s::timestamptz
      END
      AND CASE WHEN run_key LIKE '____-__-__' THEN scheduled_at < clock_timestamp() - interval '48 hours'
               WHEN run_key LIKE '____-W__' THEN scheduled_at < clock_timestamp() - interval '192 hours'
               WHEN run_key LIKE '____-__' THEN scheduled_at < clock_timestamp() - interval '768 hours'
               ELSE true END
)
