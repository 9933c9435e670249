-- grain: one generator or prompt version under one recipe, and its scored traces of the selected days and app
-- inputs: trace_scores
-- parameters: $app, $first, $last (null: all)
SELECT recipe, kind, value, count(*) FILTER (wanted) AS n
FROM (
    SELECT
        recipe,
        unnest(['generator', 'prompt']) AS kind,
        unnest([generator, prompt_version]) AS value,
        coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date) AS wanted
    FROM trace_scores
)
WHERE value IS NOT NULL
GROUP BY recipe, kind, value
ORDER BY kind, value, recipe
