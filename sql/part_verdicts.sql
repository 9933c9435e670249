-- grain: one request key that `pairs` asks for and `verdicts` (of one judge version) answers
-- inputs: pairs, verdicts
-- A label goes before a failure: a repaired request counts as judged, and the failure stays on record.
SELECT request_key, label, failure, p_supported, p_contradicted, coalesce(passages, []) AS passages
FROM verdicts
SEMI JOIN pairs USING (request_key)
QUALIFY row_number() OVER (PARTITION BY request_key ORDER BY label IS NULL, sample, created_at) = 1
