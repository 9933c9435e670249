-- grain: one failure pattern, over the claims that two recipes have in common
-- inputs: claim_results, trace_scores
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
SELECT
    pattern,
    count(*) FILTER (in_a) AS n_a,
    count(*) FILTER (in_b) AS n_b,
    count(*) FILTER (in_a AND in_b) AS n_both
FROM (
    SELECT
        unnest(list_distinct(list_concat(a.patterns, b.patterns))) AS pattern,
        list_contains(a.patterns, pattern) AS in_a,
        list_contains(b.patterns, pattern) AS in_b
    FROM claim_results AS a
    JOIN claim_results AS b ON b.recipe = $recipe_b AND b.date = a.date AND b.claim_id = a.claim_id
    JOIN trace_scores AS s ON s.recipe = a.recipe AND s.date = a.date AND s.trace_id = a.trace_id
    WHERE
        a.recipe = $recipe_a
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND a.date BETWEEN coalesce($first::DATE, a.date) AND coalesce($last::DATE, a.date)
)
GROUP BY pattern
ORDER BY pattern
