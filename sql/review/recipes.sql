-- grain: one name of recipes that count for nights, or one recipe that counts for no night but has results
-- inputs: current_recipes, recipes, trace_scores
SELECT DISTINCT recipe_name AS name, NULL AS recipe FROM current_recipes
UNION ALL
SELECT name, recipe FROM recipes WHERE recipe IN (SELECT recipe FROM trace_scores)
ORDER BY recipe NULLS FIRST, name
