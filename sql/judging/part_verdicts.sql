-- grain: one request key of `pairs` with a verdict in `verdicts` (of one judge version)
-- inputs: pairs, verdicts
-- parameters: $sample, which sample of the judge; results are made of the first, 0
-- A label goes before a failure: a repaired request counts as judged, and the failure stays on record.
SELECT request_key, label, failure, p_supported, p_contradicted, coalesce(passages, []) AS passages
FROM verdicts
SEMI JOIN pairs USING (request_key)
WHERE sample = $sample
QUALIFY row_number() OVER (PARTITION BY request_key ORDER BY label IS NULL, created_at) = 1
