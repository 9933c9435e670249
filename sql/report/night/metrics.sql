-- Grain: one number of one night, app, generator and recipe; the night and the 89 days before it.
-- Inputs: nightly_groundedness, nightly_utilization, nightly_relevance, nightly_citations, recipes, judges, current_recipes.
-- Parameters: $recipe, $night. Includes the recipe's own nights, and nights on which another recipe counted under its
-- current name or under an earlier name of one of these recipes.
WITH RECURSIVE counted AS (
    SELECT DISTINCT recipe_name, recipe FROM current_recipes
),
names AS (
    SELECT name FROM recipes WHERE recipe = $recipe
    UNION
    SELECT before.recipe_name
    FROM names
    INNER JOIN counted AS now ON now.recipe_name = names.name
    INNER JOIN counted AS before USING (recipe)
),
numbers AS (
    SELECT
        recipe, date, app, generator, judge_version, 'groundedness' AS metric, n, n_scored, n_na, n_unjudged,
        n_abstained, groundedness_mean AS mean, groundedness_low AS low, groundedness_high AS high
    FROM nightly_groundedness
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'faithfulness', n, n_scored, n_na, n_unjudged,
        n_abstained, faithfulness_mean, faithfulness_low, faithfulness_high
    FROM nightly_groundedness
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'utilization', n, n_scored, n_na, n_unjudged,
        n_abstained, utilization_mean, utilization_low, utilization_high
    FROM nightly_utilization
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version,
        CASE WHEN kind = 'answerability' THEN kind ELSE kind || '_relevance' END, n, n_scored, n_na, n_unjudged,
        n_abstained, relevance_mean, relevance_low, relevance_high
    FROM nightly_relevance
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'citation_groundedness', n, n_scored, n_na, n_unjudged,
        n_abstained, citation_groundedness_mean, citation_groundedness_low, citation_groundedness_high
    FROM nightly_citations
)
SELECT
    recipe, date, app, generator, judge_version, j.name AS judge_name, metric, n, n_scored, n_na, n_unjudged,
    n_abstained, mean, low, high, c.recipe IS NOT NULL AS counts
FROM numbers
LEFT JOIN judges AS j USING (judge_version)
LEFT JOIN (
    SELECT DISTINCT date, app, recipe FROM current_recipes WHERE recipe_name IN (SELECT name FROM names)
) AS c USING (date, app, recipe)
WHERE (recipe = $recipe OR c.recipe IS NOT NULL)
    AND date BETWEEN CAST($night AS DATE) - 89 AND CAST($night AS DATE)
ORDER BY app, generator, recipe <> $recipe, judge_version, recipe, metric, date
