-- The run was ended by this very attempt before (`ctx.transaction()`, or an answer that was lost): only what could not be known
-- then is added to the record, once. The state itself never changes.
-- ANY (ARRAY[…]): each run by its id; see settle.
WITH ended AS MATERIALIZED (
    SELECT * FROM unnest(
        %(id)s::uuid[], %(attempt)s::int[], %(result)s::text[], %(error_text)s::text[], %(output_tail)s::text[],
        %(output_bytes)s::bigint[], %(exit_code)s::int[], %(cpu)s::float8[], %(peak_rss)s::bigint[]
    ) AS e (id, attempt, result, error_text, output_tail, output_bytes, exit_code, cpu, peak_rss)
), result AS (
    UPDATE soloist.run SET result = ended.result::jsonb
    FROM ended
    WHERE run.id = ANY (ARRAY[ended.id]) AND run.attempt = ended.attempt AND run.status = 'succeeded' AND run.result IS NULL
      AND ended.result IS NOT NULL
    RETURNING run.id
)
UPDATE soloist.attempt
SET output_tail = ended.output_tail, output_bytes = ended.output_bytes, exit_code = ended.exit_code, cpu = ended.cpu,
    peak_rss = ended.peak_rss, error_text = left(ended.error_text, 8000)
FROM ended
WHERE attempt.run = ANY (ARRAY[ended.id]) AND attempt.number = ended.attempt AND attempt.output_tail IS NULL
RETURNING attempt.run, (SELECT count(*) FROM result)
