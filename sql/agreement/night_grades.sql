-- grain: one grade of one trace by one grader version
-- inputs: grades, trace_scores
-- parameters: $grader; $recipes, $app, $first, $last (null: all)
-- An outcome is `scored`, `na`, `unparsable` or `failed`; only the first has a value.
WITH trace AS (
    SELECT date, trace_id, any_value(app) AS app, coalesce(max(question_id), trace_id) AS question
    FROM trace_scores
    WHERE
        coalesce(list_contains($recipes::VARCHAR[], recipe), TRUE)
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND coalesce(date >= $first::DATE, TRUE)
        AND coalesce(date <= $last::DATE, TRUE)
    GROUP BY date, trace_id
)
SELECT g.date, g.trace_id AS item, trace.app, trace.question, g.grade, g.status AS outcome, g.value, TRUE AS drawn
FROM grades AS g
JOIN trace USING (date, trace_id)
WHERE g.grader_version = $grader
ORDER BY g.date, g.trace_id, g.grade
