-- Grain: one sample of one pair of a judge at a claim of the given traces. A pair without a verdict has one row.
-- Inputs: pairs, verdicts. Parameters: $recipe, $night, $judge_versions, $trace_ids.
WITH shown AS (
    SELECT
        claim_id, coalesce(stage, 1) AS stage, pair_kind, evidence, cited, request_key,
        list_extract($judge_versions, coalesce(stage, 1)) AS judge_version
    FROM pairs
    WHERE recipe = $recipe AND date = $night AND trace_id IN (SELECT unnest($trace_ids))
),
given AS (  -- the store is append-only: for rows of the same sample, a label beats a failure, then the earlier row counts
    SELECT
        judge_version, request_key, sample, label, failure, p_supported, p_contradicted,
        coalesce(passages, []) AS passages, explanation
    FROM verdicts
    WHERE judge_version IN (SELECT unnest($judge_versions)) AND request_key IN (SELECT request_key FROM shown)
    QUALIFY row_number() OVER (
        PARTITION BY judge_version, request_key, sample ORDER BY failure IS NOT NULL, created_at
    ) = 1
)
SELECT
    shown.claim_id, shown.stage, shown.pair_kind, shown.evidence, shown.cited, given.sample, given.label, given.failure,
    given.p_supported, given.p_contradicted, coalesce(given.passages, []) AS passages, given.explanation
FROM shown
LEFT JOIN given USING (judge_version, request_key)
ORDER BY
    shown.claim_id, shown.stage, shown.pair_kind DESC, given.p_supported DESC NULLS LAST, shown.request_key, given.sample
