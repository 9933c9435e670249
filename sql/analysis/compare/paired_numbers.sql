-- grain: one number of one app, generator and question, over the traces that two recipes have scored
-- inputs: trace_scores
-- parameters: $recipe_a, $recipe_b; $app, $first, $last (null: all)
-- A trace enters the sums where it has the number under both; where it has it under one of them, it is counted.
-- Old rows have no question_id: each is then a question of its own.
SELECT
    number,
    app,
    generator,
    question,
    count(*) FILTER (a IS NOT NULL AND b IS NOT NULL) AS n,
    count(*) FILTER (b IS NULL) AS n_only_a,
    count(*) FILTER (a IS NULL) AS n_only_b,
    coalesce(round(sum(a) FILTER (b IS NOT NULL), 9), 0) AS total_a,
    coalesce(round(sum(b) FILTER (a IS NOT NULL), 9), 0) AS total_b
FROM (
    SELECT
        a.app,
        a.generator,
        coalesce(a.question_id, trace_id) AS question,
        unnest([
            {'number': 'groundedness', 'a': a.groundedness_score, 'b': b.groundedness_score},
            {'number': 'faithfulness', 'a': a.faithfulness, 'b': b.faithfulness},
            {'number': 'utilization', 'a': a.utilization, 'b': b.utilization},
            {'number': 'context_relevance', 'a': a.context_relevance, 'b': b.context_relevance},
            {'number': 'answer_relevance', 'a': a.answer_relevance, 'b': b.answer_relevance},
            {'number': 'answerability', 'a': a.answerability, 'b': b.answerability},
            {'number': 'citation_groundedness', 'a': a.citation_groundedness, 'b': b.citation_groundedness}
        ], recursive := TRUE)
    FROM trace_scores AS a
    JOIN trace_scores AS b USING (date, trace_id)
    WHERE
        a.recipe = $recipe_a
        AND b.recipe = $recipe_b
        AND coalesce(a.app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
)
WHERE a IS NOT NULL OR b IS NOT NULL
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
