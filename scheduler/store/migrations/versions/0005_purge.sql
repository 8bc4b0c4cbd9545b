-- Whether a run may be deleted, by the instant before which its group is past its retention. A run that stands for a period
-- (`once_per`) stays until that is over in every zone, however short the retention: without it the period's next tick would run.
CREATE OR REPLACE FUNCTION soloist.is_past(status text, run_key text, scheduled_at timestamptz, finished_at timestamptz,
                                succeeded timestamptz, failed timestamptz, skipped timestamptz, now timestamptz)
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN finished_at < CASE status WHEN 'succeeded' THEN succeeded WHEN 'skipped' THEN skipped ELSE failed END
       AND scheduled_at < now - CASE WHEN run_key LIKE '____-__-__' THEN interval '48 hours'
                                     WHEN run_key LIKE '____-W__' THEN interval '192 hours'
                                     WHEN run_key LIKE '____-__' THEN interval '768 hours'
                                     ELSE interval '-1000 years' END;
