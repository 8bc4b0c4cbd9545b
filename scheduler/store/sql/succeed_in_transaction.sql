-- The last act of ctx.transaction(): the run succeeds with the job's own writes, or none of it happens.
-- Fenced: zero rows mean that the run is no longer this attempt's.
WITH won AS (
    UPDATE soloist.run
    SET status = 'succeeded', finished_at = clock_timestamp(), last_error = NULL
    WHERE id = %(id)s::uuid AND attempt = %(attempt)s AND claimed_by = %(owner)s::uuid AND status = 'running'
    RETURNING id, attempt, claimed_by, started_at
)
INSERT INTO soloist.attempt (run, number, replica, replica_name, started_at, outcome)
SELECT won.id, won.attempt, won.claimed_by, (SELECT name FROM soloist.replica WHERE id = won.claimed_by),
       won.started_at, 'succeeded'
FROM won
RETURNING run
