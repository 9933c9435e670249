-- grain: one claim's outcome by the judge of one recipe
-- inputs: claim_results, trace_scores
-- parameters: $recipe; $app, $first, $last (null: all)
-- An outcome is a claim's label, or without a label its status: `na`, `unjudged` or `abstained`.
SELECT
    r.date,
    r.claim_id,
    r.trace_id,
    s.app,
    coalesce(s.question_id, s.trace_id) AS question,
    coalesce(r.label, r.status) AS outcome,
    r.confidence,
    TRUE AS drawn
FROM claim_results AS r
JOIN trace_scores AS s USING (recipe, date, trace_id)
WHERE
    r.recipe = $recipe
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND r.date BETWEEN coalesce($first::DATE, r.date) AND coalesce($last::DATE, r.date)
ORDER BY r.date, r.claim_id
