-- grain: one number of one app, generator and question under one recipe, over the scored traces of one arm
-- inputs: trace_numbers
-- parameters: $recipe; $generator, $prompt_version, $app, $first, $last (null: all)
<<<<<<< HEAD
=======
-- An old row without question_id counts as a question of its own. Grades are those of the recipe's grader.
WITH trace AS (
    SELECT *, coalesce(question_id, trace_id) AS question
    FROM trace_scores
    WHERE
        recipe = $recipe
        AND coalesce(generator = $generator::VARCHAR, TRUE)
        AND ($prompt_version::VARCHAR IS NULL OR prompt_version = $prompt_version::VARCHAR)
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
),
score AS (
    FROM (
        UNPIVOT (
            SELECT
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
        ON COLUMNS(* EXCLUDE (app, generator, question))
        INTO NAME number VALUE score
    )
    UNION ALL BY NAME
    SELECT trace.app, trace.generator, trace.question, 'grade_' || g.grade AS number, g.value AS score
    FROM trace
    JOIN recipes AS r USING (recipe)
    JOIN grades AS g USING (grader_version, extractor_version, date, trace_id)
    WHERE g.value IS NOT NULL
)
>>>>>>> words-c
SELECT
    number,
    app,
    generator,
    question,
    count(*) AS n,
    round(sum(value), 9) AS total,
    round(sum(value * value), 9) AS squares
FROM trace_numbers
WHERE
    recipe = $recipe
    AND coalesce(generator = $generator::VARCHAR, TRUE)
    AND ($prompt_version::VARCHAR IS NULL OR prompt_version = $prompt_version::VARCHAR)
    AND coalesce(app = $app::VARCHAR, TRUE)
    AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
