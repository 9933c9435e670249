-- Grain: one sample of one look of the judge at a claim of the given traces; a look without a verdict is one row.
-- Inputs: pairs, verdicts. Parameters: $recipe, $night, $judge_version, $trace_ids.
WITH looks AS (
    SELECT claim_id, look, evidence, cited, request_key
    FROM pairs
    WHERE recipe = $recipe AND date = $night AND trace_id IN (SELECT unnest($trace_ids))
),
given AS (  -- the store is append-only: of two rows for one sample, a label beats a failure, then the earlier one counts
    SELECT request_key, sample, label, failure, p_supported, p_contradicted, explanation
    FROM verdicts
    WHERE judge_version = $judge_version AND request_key IN (SELECT request_key FROM looks)
    QUALIFY row_number() OVER (
        PARTITION BY request_key, sample ORDER BY failure IS NOT NULL, created_at
    ) = 1
)
SELECT
    looks.claim_id, looks.look, looks.evidence, looks.cited, given.sample, given.label, given.failure,
    given.p_supported, given.p_contradicted, given.explanation
FROM looks
LEFT JOIN given USING (request_key)
ORDER BY looks.claim_id, looks.look DESC, given.p_supported DESC NULLS LAST, looks.request_key, given.sample
