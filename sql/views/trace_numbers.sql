-- grain: one number of one trace under one recipe: a score or a grade that is not n/a
-- inputs: trace_scores, recipes, grades
-- Rows without a question_id are each a question of their own. Grades are those of the recipe's grader.
WITH trace AS (
    SELECT *, coalesce(question_id, trace_id) AS question
    FROM trace_scores
)
SELECT recipe, date, trace_id, app, generator, prompt_version, question, number, value
FROM (
    UNPIVOT (SELECT *, groundedness_score AS groundedness FROM trace)
    ON groundedness, faithfulness, utilization, context_relevance, answer_relevance, answerability, citation_groundedness
    INTO NAME number VALUE value
)
UNION ALL
SELECT t.recipe, t.date, t.trace_id, t.app, t.generator, t.prompt_version, t.question, 'grade_' || g.grade, g.value
FROM trace AS t
JOIN recipes AS r USING (recipe)
JOIN grades AS g USING (grader_version, extractor_version, date, trace_id)
WHERE g.value IS NOT NULL
