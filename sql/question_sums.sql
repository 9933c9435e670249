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
        {'n': count(answerability), 'total': sum(answerability)} AS answerability,
        {'n': count(citation_groundedness), 'total': sum(citation_groundedness)} AS citation_groundedness
    FROM trace_scores
    GROUP BY date, app, generator, question_id
),
night AS (
    SELECT
        date,
        app,
        generator,
        list(groundedness ORDER BY question_id) FILTER (groundedness.n > 0) AS groundedness,
        list(faithfulness ORDER BY question_id) FILTER (faithfulness.n > 0) AS faithfulness,
        list(utilization ORDER BY question_id) FILTER (utilization.n > 0) AS utilization,
        list(answer_relevance ORDER BY question_id) FILTER (answer_relevance.n > 0) AS answer_relevance,
        list(context_relevance ORDER BY question_id) FILTER (context_relevance.n > 0) AS context_relevance,
        list(answerability ORDER BY question_id) FILTER (answerability.n > 0) AS answerability,
        list(citation_groundedness ORDER BY question_id) FILTER (citation_groundedness.n > 0) AS citation_groundedness
    FROM question
    GROUP BY date, app, generator
)
SELECT
    date,
    app,
    generator,
    number,
    list_transform(sums, lambda s: s.n::DOUBLE) AS n,
    list_transform(sums, lambda s: round(s.total, 9)) AS total
FROM (
    UNPIVOT night
    ON groundedness, faithfulness, utilization, answer_relevance, context_relevance, answerability, citation_groundedness
    INTO NAME number VALUE sums
)
ORDER BY app, generator, number
