-- grain: one pair of the judge at one claim under one recipe, with its verdict (the first sample)
-- inputs: pairs, recipes, verdicts
-- If label and failure are both null, there is no verdict yet.
SELECT
    p.recipe,
    p.date,
    p.claim_id,
    p.trace_id,
    coalesce(p.stage, 1) AS stage,
    p.pair_kind,
    p.cited,
    p.evidence,
    list_transform(p.evidence, lambda e: e.chunk_id) AS chunk_ids,
    p.request_key,
    coalesce(r.judge_versions[coalesce(p.stage, 1)], r.judge_version) AS judge_version,
    v.label,
    v.failure,
    v.p_supported,
    v.p_contradicted,
    v.passages,
    v.explanation,
    v.engine,
    v.created_at
FROM pairs AS p
JOIN recipes AS r USING (recipe)
LEFT JOIN verdicts AS v
    ON v.request_key = p.request_key
    AND v.sample = 0
    AND v.judge_version = coalesce(r.judge_versions[coalesce(p.stage, 1)], r.judge_version)
QUALIFY row_number() OVER (
    PARTITION BY p.recipe, p.date, p.claim_id, p.stage, p.pair_kind, p.request_key, p.evidence
    ORDER BY v.label IS NULL, v.created_at
) = 1
