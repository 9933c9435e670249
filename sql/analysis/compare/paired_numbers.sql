-- grain: one number of one app, generator and question, over the traces that two recipes have scored
-- inputs: trace_numbers, trace_scores
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
-- A trace enters the sums where it has the number under both; where it has it under one of them, it is counted.
WITH number AS (
    FROM trace_numbers
    WHERE
        coalesce(app = $app::VARCHAR, TRUE)
        AND coalesce(date >= $first::DATE, TRUE)
        AND coalesce(date <= $last::DATE, TRUE)
),
scored AS (
    SELECT date, trace_id FROM trace_scores WHERE recipe = $recipe_a
    INTERSECT
    SELECT date, trace_id FROM trace_scores WHERE recipe = $recipe_b
)
SELECT
    number,
    app,
    generator,
    question,
    count(*) FILTER (a.value IS NOT NULL AND b.value IS NOT NULL) AS n,
    count(*) FILTER (b.value IS NULL) AS n_only_a,
    count(*) FILTER (a.value IS NULL) AS n_only_b,
    coalesce(round(sum(a.value) FILTER (b.value IS NOT NULL), 9), 0) AS total_a,
    coalesce(round(sum(b.value) FILTER (a.value IS NOT NULL), 9), 0) AS total_b
FROM (SELECT * FROM number WHERE recipe = $recipe_a) AS a
FULL JOIN (SELECT * FROM number WHERE recipe = $recipe_b) AS b
    USING (number, date, trace_id, app, generator, question)
JOIN scored USING (date, trace_id)
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
