-- grain: one combination of the outcomes under A and B, over the claims of one app, generator and question
-- inputs: claim_results, trace_scores
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
-- An outcome is a claim's label, or without a label its status: `na`, `unjudged` or `abstained`.
SELECT
    s.app,
    s.generator,
    coalesce(s.question_id, s.trace_id) AS question,
    coalesce(a.label, a.status) AS outcome_a,
    coalesce(b.label, b.status) AS outcome_b,
    count(*) AS n
FROM claim_results AS a
JOIN claim_results AS b ON b.recipe = $recipe_b AND b.date = a.date AND b.claim_id = a.claim_id
JOIN trace_scores AS s ON s.recipe = a.recipe AND s.date = a.date AND s.trace_id = a.trace_id
WHERE
    a.recipe = $recipe_a
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND a.date BETWEEN coalesce($first::DATE, a.date) AND coalesce($last::DATE, a.date)
GROUP BY ALL
ORDER BY ALL
