-- grain: one grader version that has graded traces, with the number of them within the selected days and app
-- inputs: grades, recipes, trace_scores, judges
-- parameters: $recipes, $app, $first, $last (null: all)
WITH trace AS (
    SELECT DISTINCT s.date, s.trace_id, r.extractor_version
    FROM trace_scores AS s
    JOIN recipes AS r USING (recipe)
    WHERE
        coalesce(list_contains($recipes::VARCHAR[], s.recipe), TRUE)
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND s.date BETWEEN coalesce($first::DATE, s.date) AND coalesce($last::DATE, s.date)
)
SELECT
    g.grader_version AS version,
    any_value(coalesce(j.name, g.grader_version)) AS name,
    count(DISTINCT g.trace_id) FILTER (trace.trace_id IS NOT NULL) AS n
FROM grades AS g
LEFT JOIN trace USING (date, trace_id, extractor_version)
LEFT JOIN judges AS j ON j.judge_version = g.grader_version
GROUP BY g.grader_version
ORDER BY name, version
