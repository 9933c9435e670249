-- grain: one number of one app, generator and question, over the traces that two recipes have scored
-- inputs: trace_scores, recipes, grades
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
-- Sums are over traces that have the number under both recipes. Traces that have it under only one are counted.
-- An old row without question_id counts as a question of its own. Grades are those of each recipe's grader.
WITH trace AS (
    SELECT *, coalesce(question_id, trace_id) AS question
    FROM trace_scores
    WHERE
        recipe IN ($recipe_a, $recipe_b)
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND coalesce(date >= $first::DATE, TRUE)
        AND coalesce(date <= $last::DATE, TRUE)
),
score AS (
    FROM (
        UNPIVOT (
            SELECT
                recipe,
                date,
                trace_id,
                app,
                generator,
                question,
                groundedness_score AS groundedness,
                faithfulness,
                utilization,
                context_relevance,
                answer_relevance,
                answerability,
                citation_groundedness
            FROM trace
        )
        ON groundedness, faithfulness, utilization, context_relevance, answer_relevance, answerability, citation_groundedness
        INTO NAME number VALUE score
    )
    UNION ALL BY NAME
    SELECT
        recipe,
        date,
        trace_id,
        trace.app,
        trace.generator,
        trace.question,
        'grade_' || g.grade AS number,
        g.value AS score
    FROM trace
    JOIN recipes AS r USING (recipe)
    JOIN grades AS g USING (grader_version, extractor_version, date, trace_id)
    WHERE g.value IS NOT NULL
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
    count(*) FILTER (a.score IS NOT NULL AND b.score IS NOT NULL) AS n,
    count(*) FILTER (b.score IS NULL) AS n_only_a,
    count(*) FILTER (a.score IS NULL) AS n_only_b,
    coalesce(round(sum(a.score) FILTER (b.score IS NOT NULL), 9), 0) AS total_a,
    coalesce(round(sum(b.score) FILTER (a.score IS NOT NULL), 9), 0) AS total_b
FROM (SELECT * FROM score WHERE recipe = $recipe_a) AS a
FULL JOIN (SELECT * FROM score WHERE recipe = $recipe_b) AS b
    USING (number, date, trace_id, app, generator, question)
JOIN scored USING (date, trace_id)
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
