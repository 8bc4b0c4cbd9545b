-- Jobs that the plan in force no longer has. Nothing is deleted: their history stays, and their watermark.
UPDATE soloist.job SET removed_at = COALESCE(removed_at, clock_timestamp()), generation = %(generation)s::int
WHERE id = ANY (%(id)s::int[])
