-- grain: one claim that people labeled, under the recipe that counted for it
-- inputs: reviewed_claims, trace_scores, current_recipes
-- parameters: $recipe_name or $recipe; $app, $first, $last (null: all)
SELECT
    v.date,
    v.trace_id,
    v.claim_id,
    coalesce(s.question_id, s.trace_id) AS question,
    v.outcome,
    v.n_reviewers,
    v.adjudicated,
    v.disputed,
    v.votes
FROM reviewed_claims AS v
JOIN trace_scores AS s ON s.recipe = v.recipe AND s.date = v.date AND s.trace_id = v.trace_id
LEFT JOIN current_recipes AS c
    ON c.date = s.date AND c.app = s.app AND c.recipe = s.recipe AND c.recipe_name = $recipe_name::VARCHAR
WHERE
    coalesce(s.recipe = $recipe::VARCHAR, c.recipe IS NOT NULL)
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND coalesce(s.date >= $first::DATE, TRUE)
    AND coalesce(s.date <= $last::DATE, TRUE)
ORDER BY v.date, v.trace_id, v.claim_id
