-- grain: one claim that two recipes label differently, the most confident disagreements first
-- inputs: claim_results, trace_scores
-- parameters: $recipe_a, $recipe_b, $most; $app, $first, $last (null: all)
-- The confidence of a disagreement is the smaller one of both labels. Disagreements without confidence come last.
SELECT
    a.date,
    a.claim_id,
    a.trace_id,
    s.app,
    s.generator,
    a.label AS label_a,
    b.label AS label_b,
    a.confidence AS confidence_a,
    b.confidence AS confidence_b
FROM claim_results AS a
JOIN claim_results AS b ON b.recipe = $recipe_b AND b.date = a.date AND b.claim_id = a.claim_id
JOIN trace_scores AS s ON s.recipe = a.recipe AND s.date = a.date AND s.trace_id = a.trace_id
WHERE
    a.recipe = $recipe_a
    AND a.label <> b.label
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND a.date BETWEEN coalesce($first::DATE, a.date) AND coalesce($last::DATE, a.date)
ORDER BY
    least(coalesce(a.confidence, 0), coalesce(b.confidence, 0)) DESC,
    coalesce(a.confidence, 0) + coalesce(b.confidence, 0) DESC,
    a.date,
    a.claim_id
LIMIT $most
