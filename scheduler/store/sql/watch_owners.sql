-- Who owns runs besides me, and whether each one's presence lock stands. Of an owner without one, the runs that may be taken
-- from it. A job that asked to go on through lost contact is left to its lease: its owner may well be alive.
WITH owners AS MATERIALIZED (
    SELECT run.claimed_by AS id,
           array_agg(run.id) FILTER (WHERE job.spec ->> 'lost_contact' IS DISTINCT FROM 'continue') AS runs,
           array_agg(run.claimed_until) FILTER (WHERE job.spec ->> 'lost_contact' IS DISTINCT FROM 'continue') AS untils
    FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE run.status = 'running' AND run.claimed_by <> %(me)s::uuid
    GROUP BY run.claimed_by
), looked AS (
    SELECT owners.*, soloist.presence_key(owners.id) IN (SELECT held.key FROM soloist.held_lock held) AS present
    FROM owners
)
SELECT looked.id, looked.present, COALESCE(replica.lease, 15),
       CASE WHEN NOT looked.present THEN looked.runs END, CASE WHEN NOT looked.present THEN looked.untils END,
       pg_postmaster_start_time()
FROM looked LEFT JOIN soloist.replica ON replica.id = looked.id
