-- grain: one grade of one trace by people, or by one reviewer
-- inputs: reviewed_grades, trace_scores
-- parameters: $reviewer (null: the final grade of all), $recipes, $app, $first, $last (null: all)
-- An outcome is `scored`, `na`, or `tied` (two grades are equally frequent); only the first has a value. Traces that
-- were picked for review because of their labels are not `drawn`.
WITH trace AS (
    SELECT date, trace_id, any_value(app) AS app, coalesce(max(question_id), trace_id) AS question
    FROM trace_scores
    WHERE
        coalesce(list_contains($recipes::VARCHAR[], recipe), TRUE)
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
    GROUP BY date, trace_id
),
reviewed AS (
    SELECT
        *,
        list_filter(votes, lambda v: v.reviewer = $reviewer::VARCHAR AND NOT v.adjudicated) AS own
    FROM reviewed_grades
)
SELECT
    reviewed.date,
    reviewed.trace_id AS item,
    trace.app,
    trace.question,
    reviewed.grade,
    CASE
        WHEN $reviewer::VARCHAR IS NOT NULL THEN if(own[1].value IS NULL, 'na', 'scored')
        WHEN reviewed.outcome = 'graded' THEN 'scored'
        ELSE reviewed.outcome
    END AS outcome,
    if($reviewer::VARCHAR IS NULL, reviewed.value, own[1].value) AS value,
    reviewed.random AS drawn
FROM reviewed
JOIN trace USING (date, trace_id)
WHERE $reviewer::VARCHAR IS NULL OR len(own) > 0
ORDER BY reviewed.date, reviewed.trace_id, reviewed.grade
