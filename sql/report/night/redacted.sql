-- Grain: one row, the number of traces of the night under the recipe whose text was removed.
-- Inputs: trace_scores, traces. Parameters: $recipe, $night.
SELECT count(*) AS n
FROM trace_scores AS s
INNER JOIN traces AS t ON t.date = s.date AND t.trace_id = s.trace_id
WHERE s.recipe = $recipe AND s.date = $night AND t.text_redacted_at IS NOT NULL
