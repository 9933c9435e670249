-- Grain: one app and generator of the night: versions of its prompts and retrievers, in order; empty if traces name
--   none.
-- Inputs: trace_scores, traces. Parameters: $recipe, $night.
SELECT
    s.app, s.generator,
    coalesce(list(DISTINCT s.prompt_version ORDER BY s.prompt_version) FILTER (s.prompt_version IS NOT NULL), [])
        AS prompts,
    coalesce(list(DISTINCT t.retriever ORDER BY t.retriever) FILTER (t.retriever IS NOT NULL), []) AS retrievers
FROM trace_scores AS s
LEFT JOIN (SELECT trace_id, retriever FROM traces WHERE date = $night) AS t USING (trace_id)
WHERE s.recipe = $recipe AND s.date = $night
GROUP BY s.app, s.generator
ORDER BY s.app, s.generator
