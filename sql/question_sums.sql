-- grain: one number of one night of one app and generator; per question, how many traces have it and their sum
-- inputs: trace_scores of one recipe and day
-- What the intervals of the nightly tables are made from (METHODS section 11). Sums are rounded so that they don't
-- depend on the order in which rows were added up.
WITH question AS (
    SELECT
        date,
        app,
        generator,
        question_id,
        {'n': count(groundedness_score), 'total': sum(groundedness_score)} AS groundedness,
        {'n': count(faithfulness), 'total': sum(faithfulness)} AS faithfulness,
        {'n': count(utilization), 'total': sum(utilization)} AS utilization,
        {'n': count(answer_relevance), 'total': sum(answer_relevance)} AS answer_relevance,
        {'n': count(context_relevance), 'total': sum(context_relevance)} AS context_relevance,
        {'n': count(citation_groundedness), 'total': sum(citation_groundedness)} AS citation_groundedness
    FROM trace_scores
    GROUP BY date, app, generator, question_id
),
number AS (
    UNPIVOT question
    ON groundedness, faithfulness, utilization, answer_relevance, context_relevance, citation_groundedness
    INTO NAME number VALUE sums
)
SELECT
    date,
    app,
    generator,
    number,
    list(sums.n::DOUBLE ORDER BY question_id) AS n,
    list(round(sums.total, 9) ORDER BY question_id) AS total
FROM number
WHERE sums.n > 0
GROUP BY date, app, generator, number
ORDER BY app, generator, number
