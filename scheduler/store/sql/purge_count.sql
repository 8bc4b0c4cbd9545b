-- What a purge would delete, by group.
SELECT CASE WHEN status IN ('succeeded', 'skipped') THEN status ELSE 'failed' END AS of_group, count(*)
FROM soloist.run
WHERE id < %(before)s::uuid
  AND soloist.is_past(status, run_key, scheduled_at, finished_at,
                          %(succeeded)s::timestamptz, %(failed)s::timestamptz, %(skipped)s::timestamptz, clock_timestamp())
GROUP BY 1
