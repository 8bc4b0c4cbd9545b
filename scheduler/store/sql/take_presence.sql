-- The lock by which others see that this replica's session stands. A session of ours from before, whose end the server has
-- not noticed, may still hold it: that one is ended, and the next try succeeds.
WITH mine AS MATERIALIZED (
    SELECT pg_try_advisory_lock(%(key)s::bigint) AS taken
)
SELECT mine.taken, (SELECT count(pg_terminate_backend(held.pid)) FROM soloist.held_lock held
                    WHERE NOT mine.taken AND held.key = %(key)s::bigint)
FROM mine
