UPDATE soloist.job SET removed_at = clock_timestamp(), generation = %(generation)s::int
WHERE id = ANY (%(id)s::int[]) AND removed_at IS NULL
