-- Progress that survives to the next attempt. Fenced: zero rows mean that the run is no longer this attempt's.
UPDATE soloist.run
SET checkpoint = %(state)s::jsonb
WHERE id = %(id)s::uuid AND attempt = %(attempt)s AND claimed_by = %(owner)s::uuid AND status = 'running'
RETURNING id
