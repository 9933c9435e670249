-- Grain: one row, the recipe, with the judge that it names, and its grader.
-- Inputs: recipes, judges. Parameters: $recipe.
SELECT
    r.recipe,
    r.name AS recipe_name,
    r.judge_version,
    coalesce(r.judge_versions, [r.judge_version]) AS judge_versions,
    j.name AS judge_name,
    j.kind AS judge_kind,
    r.extractor_version,
    r.scorer_versions,
    r.grader_version,
    g.name AS grader_name,
    r.definition
FROM recipes AS r
LEFT JOIN judges AS j USING (judge_version)
LEFT JOIN judges AS g ON g.judge_version = r.grader_version
WHERE r.recipe = $recipe
LIMIT 1
