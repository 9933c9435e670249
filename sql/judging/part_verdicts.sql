-- grain: one request key of `pairs` with a verdict in `verdicts` (of one judge version)
-- inputs: pairs, verdicts
-- parameters: $sample (number of the judge's sample; results use the first, 0)
-- A label beats a failure: a repaired request counts as judged, and the failure stays in the table.
SELECT request_key, label, failure, p_supported, p_contradicted, coalesce(passages, []) AS passages
FROM verdicts
SEMI JOIN pairs USING (request_key)
WHERE sample = $sample
QUALIFY row_number() OVER (PARTITION BY request_key ORDER BY label IS NULL, created_at) = 1
