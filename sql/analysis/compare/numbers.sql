-- grain: one number of one app, generator and question under one recipe, over the scored traces of one arm
-- inputs: trace_scores
-- parameters: $recipe; $generator, $prompt_version, $app, $first, $last (null: all)
-- Old rows have no question_id: each is then a question of its own.
SELECT
    number,
    app,
    generator,
    question,
    count(*) AS n,
    round(sum(score), 9) AS total,
    round(sum(score * score), 9) AS squares
FROM (
    UNPIVOT (
        SELECT
            app,
            generator,
            coalesce(question_id, trace_id) AS question,
            groundedness_score AS groundedness,
            faithfulness,
            utilization,
            context_relevance,
            answer_relevance,
            answerability,
            citation_groundedness
        FROM trace_scores
        WHERE
            recipe = $recipe
            AND coalesce(generator = $generator::VARCHAR, TRUE)
            AND ($prompt_version::VARCHAR IS NULL OR prompt_version = $prompt_version::VARCHAR)
            AND coalesce(app = $app::VARCHAR, TRUE)
            AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
    )
    ON COLUMNS(* EXCLUDE (app, generator, question))
    INTO NAME number VALUE score
)
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
