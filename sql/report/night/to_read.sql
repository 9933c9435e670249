-- Grain: one trace to read: claims to check first, then most evidence of an error; one per question, only with text.
-- Inputs: trace_scores, traces. Parameters: $recipe, $night, $limit.
SELECT
    s.trace_id, s.claims_to_check, s.claims_contradicted, s.claims_misused,
    coalesce(s.groundedness_score, s.citation_groundedness) AS score
FROM trace_scores AS s
INNER JOIN (
    SELECT trace_id FROM traces WHERE date = $night AND text_redacted_at IS NULL
) AS t USING (trace_id)
WHERE s.recipe = $recipe AND s.date = $night AND s.claims_judged > 0
QUALIFY row_number() OVER (
    PARTITION BY s.app, s.generator, coalesce(s.question_id, s.trace_id)
    ORDER BY s.claims_to_check + s.claims_contradicted + s.claims_misused DESC, score ASC NULLS LAST, s.trace_id
) = 1
ORDER BY
    s.claims_to_check > 0 DESC,
    s.claims_to_check + s.claims_contradicted + s.claims_misused DESC,
    score ASC NULLS LAST,
    s.trace_id
LIMIT $limit
