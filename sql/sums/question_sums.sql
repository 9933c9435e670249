-- grain: one number of one night of one app and generator
-- inputs: trace_scores of one recipe and day
-- The sums behind the intervals of nightly means and shares (docs/methods.md#noise-and-confidence). Per question, in
-- any order: number of traces with the number (n), and its sum (total). For misuses, n counts judged claims; for claims
-- to check, supported claims. `questions` counts the questions with these sums.
WITH question AS MATERIALIZED (
    SELECT
        date,
        app,
        generator,
        {'n': count(groundedness_score), 'total': sum(groundedness_score)} AS groundedness,
        {'n': count(faithfulness), 'total': sum(faithfulness)} AS faithfulness,
        {'n': count(utilization), 'total': sum(utilization)} AS utilization,
        {'n': count(answer_relevance), 'total': sum(answer_relevance)} AS answer_relevance,
        {'n': count(context_relevance), 'total': sum(context_relevance)} AS context_relevance,
        {'n': count(answerability), 'total': sum(answerability)} AS answerability,
        {'n': count(citation_groundedness), 'total': sum(citation_groundedness)} AS citation_groundedness,
        {'n': count(citation_recall), 'total': sum(citation_recall)} AS citation_recall,
        {'n': count(citation_precision), 'total': sum(citation_precision)} AS citation_precision,
        {'n': sum(claims_judged), 'total': sum(claims_misused)} AS misused,
        {'n': sum(claims_supported), 'total': sum(claims_to_check)} AS to_check,
        count(diagnosis) AS diagnosed,
        count(*) FILTER (diagnosis = 'retrieval') AS diagnosis_retrieval,
        count(*) FILTER (diagnosis = 'generator') AS diagnosis_generator,
        count(*) FILTER (diagnosis = 'prompt') AS diagnosis_prompt,
        count(*) FILTER (diagnosis = 'healthy') AS diagnosis_healthy,
        count(*) FILTER (diagnosis = 'declined') AS diagnosis_declined
    FROM trace_scores
    GROUP BY date, app, generator, coalesce(question_id, trace_id) -- null if the text was removed
),
night AS (
    SELECT
        date,
        app,
        generator,
        list(groundedness) FILTER (groundedness.n > 0) AS groundedness,
        list(faithfulness) FILTER (faithfulness.n > 0) AS faithfulness,
        list(utilization) FILTER (utilization.n > 0) AS utilization,
        list(answer_relevance) FILTER (answer_relevance.n > 0) AS answer_relevance,
        list(context_relevance) FILTER (context_relevance.n > 0) AS context_relevance,
        list(answerability) FILTER (answerability.n > 0) AS answerability,
        list(citation_groundedness) FILTER (citation_groundedness.n > 0) AS citation_groundedness,
        list(citation_recall) FILTER (citation_recall.n > 0) AS citation_recall,
        list(citation_precision) FILTER (citation_precision.n > 0) AS citation_precision,
        list(misused) FILTER (misused.n > 0) AS misused,
        list(to_check) FILTER (to_check.n > 0) AS to_check
    FROM question
    GROUP BY date, app, generator
),
-- Most questions occur once, so there are few distinct combinations of diagnoses.
alike AS (
    SELECT
        date, app, generator, diagnosed,
        diagnosis_retrieval, diagnosis_generator, diagnosis_prompt, diagnosis_healthy, diagnosis_declined,
        count(*) AS questions
    FROM question
    WHERE diagnosed > 0
    GROUP BY ALL
)
SELECT
    date,
    app,
    generator,
    number,
    list_transform(sums, lambda s: s.n::UINTEGER) AS n,
    list_transform(sums, lambda s: s.total::DOUBLE) AS total,
    list_transform(sums, lambda s: 1::UINTEGER) AS questions
FROM (
    UNPIVOT night
    ON groundedness, faithfulness, utilization, answer_relevance, context_relevance, answerability, citation_groundedness,
        citation_recall, citation_precision, misused, to_check
    INTO NAME number VALUE sums
)
UNION ALL
SELECT
    date,
    app,
    generator,
    number,
    list(diagnosed::UINTEGER),
    list(with_it::DOUBLE),
    list(questions::UINTEGER)
FROM (
    UNPIVOT alike
    ON diagnosis_retrieval, diagnosis_generator, diagnosis_prompt, diagnosis_healthy, diagnosis_declined
    INTO NAME number VALUE with_it
)
GROUP BY date, app, generator, number
ORDER BY app, generator, number
