-- grain: one grade of one trace by one grader version
-- inputs: grades, recipes, trace_scores
-- parameters: $grader; $recipes, $app, $first, $last (null: all)
-- An outcome is `scored`, `na`, `unparsable` or `failed`; only the first has a value. An answer that several
-- extractors cut into different statements is graded once per extractor; only the grade of the first one counts.
WITH trace AS (
    SELECT
        s.date,
        s.trace_id,
        r.extractor_version,
        any_value(s.app) AS app,
        coalesce(max(s.question_id), s.trace_id) AS question
    FROM trace_scores AS s
    JOIN recipes AS r USING (recipe)
    WHERE
        coalesce(list_contains($recipes::VARCHAR[], s.recipe), TRUE)
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND s.date BETWEEN coalesce($first::DATE, s.date) AND coalesce($last::DATE, s.date)
    GROUP BY s.date, s.trace_id, r.extractor_version
)
SELECT g.date, g.trace_id AS item, trace.app, trace.question, g.grade, g.status AS outcome, g.value, TRUE AS drawn
FROM grades AS g
JOIN trace USING (date, trace_id, extractor_version)
WHERE g.grader_version = $grader
QUALIFY row_number() OVER (PARTITION BY g.date, g.trace_id, g.grade ORDER BY g.extractor_version) = 1
ORDER BY g.date, g.trace_id, g.grade
