-- Every replica reads the instants of every job, and Python holds none before the year 1 or after 9999, nor infinity: one pause
-- `until` such an instant ended all replicas, and none could start again. The years are those of the calendar (core/zones.py).

-- What stands already is moved to the bound that it is past: a pause until infinity is one until the year 2999.
UPDATE soloist.job SET paused_until = LEAST(GREATEST(paused_until, '1900-01-01 00:00:00+00'), '2999-12-31 23:59:59+00')
WHERE paused_until < '1900-01-01 00:00:00+00' OR paused_until >= '3000-01-01 00:00:00+00';
UPDATE soloist.audit SET until = LEAST(GREATEST(until, '1900-01-01 00:00:00+00'), '2999-12-31 23:59:59+00')
WHERE until < '1900-01-01 00:00:00+00' OR until >= '3000-01-01 00:00:00+00';

-- NOT VALID: a row that somebody breaks just now must not keep the schema from being migrated; nobody can break one after it.
-- A watermark may stand a moment before the first tick of all.
ALTER TABLE soloist.job ADD CONSTRAINT job_instants_from_1900_to_2999 CHECK (
    watermark >= '1899-12-31 00:00:00+00' AND watermark < '3000-01-01 00:00:00+00'
    AND paused_at >= '1900-01-01 00:00:00+00' AND paused_at < '3000-01-01 00:00:00+00'
    AND paused_until >= '1900-01-01 00:00:00+00' AND paused_until < '3000-01-01 00:00:00+00'
    AND resumed_at >= '1900-01-01 00:00:00+00' AND resumed_at < '3000-01-01 00:00:00+00'
    AND removed_at >= '1900-01-01 00:00:00+00' AND removed_at < '3000-01-01 00:00:00+00') NOT VALID;
ALTER TABLE soloist.audit ADD CONSTRAINT audit_until_from_1900_to_2999 CHECK (
    until >= '1900-01-01 00:00:00+00' AND until < '3000-01-01 00:00:00+00') NOT VALID;
