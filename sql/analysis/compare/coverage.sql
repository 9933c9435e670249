-- grain: one row: the scored traces of two recipes in the selected days and app
-- inputs: trace_scores
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
SELECT
    count(*) FILTER (in_a AND in_b) AS n_both,
    count(*) FILTER (in_a AND NOT in_b) AS n_only_a,
    count(*) FILTER (in_b AND NOT in_a) AS n_only_b
FROM (
    SELECT date, trace_id, bool_or(recipe = $recipe_a) AS in_a, bool_or(recipe = $recipe_b) AS in_b
    FROM trace_scores
    WHERE
        recipe IN ($recipe_a, $recipe_b)
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
    GROUP BY date, trace_id
)
