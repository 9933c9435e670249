-- grain: one application of one night, with the recipe and judge that count for it under the main recipe, the first of the config
-- inputs: current_recipes, recipes, runs
-- The main recipe is identified by its name in the last completed night. Nights on which it had another name are found
-- by a recipe that counted under both names.
WITH RECURSIVE latest AS (
    SELECT name
    FROM recipes
    WHERE recipe = (
        SELECT max_by(recipe, started_at) FROM runs WHERE flow = 'nightly' AND status = 'completed'
    )
),
counted AS (
    SELECT DISTINCT recipe_name AS name, recipe FROM current_recipes
),
names AS (
    SELECT name FROM latest
    UNION
    SELECT before.name
    FROM names
    INNER JOIN counted AS now USING (name)
    INNER JOIN counted AS before USING (recipe)
)
SELECT c.date, c.app, c.recipe, c.judge_version
FROM current_recipes AS c
INNER JOIN names ON names.name = c.recipe_name
QUALIFY row_number() OVER (
    PARTITION BY c.date, c.app ORDER BY c.recipe_name IN (SELECT name FROM latest) DESC, c.recipe_name
) = 1
ORDER BY c.date, c.app
