-- grain: one recipe's name, or one recipe that counts for no night, of which there are results
-- inputs: current_recipes, recipes, trace_scores
SELECT DISTINCT recipe_name AS name, NULL AS recipe FROM current_recipes
UNION ALL
SELECT name, recipe FROM recipes WHERE recipe IN (SELECT recipe FROM trace_scores)
ORDER BY recipe NULLS FIRST, name
