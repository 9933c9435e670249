-- Grain: one app and generator of the night: the versions of its prompt, in order; none where traces name none.
-- Inputs: trace_scores. Parameters: $recipe, $night.
SELECT app, generator, coalesce(list(DISTINCT prompt_version ORDER BY prompt_version), []) AS versions
FROM trace_scores
WHERE recipe = $recipe AND date = $night AND prompt_version IS NOT NULL
GROUP BY ALL
ORDER BY ALL
