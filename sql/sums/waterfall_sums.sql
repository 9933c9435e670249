-- grain: one number of one night of one app and generator: `share_` or `wrong_`, and a stage of the waterfall or `sent`
-- inputs: trace_scores of one recipe and day, reviewed_traces (see reviewed_traces.sql; of the same recipe, any days)
-- The sums behind the intervals of `nightly_waterfall` (docs/methods.md#noise-and-confidence). Per question, in any
-- order: number of traces (n) and of those that stop at the stage (total); or number of reviewed traces that stop there
-- (n) and of those that are wrong (total). `questions` counts the questions with these sums.
WITH question AS (
    SELECT
        date,
        app,
        generator,
        count(*) AS n,
        count(*) FILTER (waterfall = 'retrieval') AS retrieval,
        count(*) FILTER (waterfall = 'answerability') AS answerability,
        count(*) FILTER (waterfall = 'faithfulness') AS faithfulness,
        count(*) FILTER (waterfall = 'answer_relevance') AS answer_relevance,
        count(*) FILTER (waterfall = 'sent') AS sent
    FROM trace_scores
    GROUP BY date, app, generator, coalesce(question_id, trace_id)
),
alike AS (
    SELECT *, count(*) AS questions
    FROM question
    GROUP BY ALL
),
reviewed AS (
    SELECT date, app, generator, waterfall AS stage, count(wrong) AS n, count(*) FILTER (wrong) AS total
    FROM trace_scores
    JOIN (SELECT trace_id, wrong FROM reviewed_traces WHERE random AND wrong IS NOT NULL) USING (trace_id)
    GROUP BY date, app, generator, stage, coalesce(question_id, trace_id)
)
SELECT
    date,
    app,
    generator,
    'share_' || stage AS number,
    list(n::UINTEGER) AS n,
    list(total::DOUBLE) AS total,
    list(questions::UINTEGER) AS questions
FROM (
    UNPIVOT alike
    ON retrieval, answerability, faithfulness, answer_relevance, sent
    INTO NAME stage VALUE total
)
GROUP BY date, app, generator, stage
UNION ALL
SELECT date, app, generator, 'wrong_' || stage, list(n::UINTEGER), list(total::DOUBLE), list(1::UINTEGER)
FROM reviewed
GROUP BY date, app, generator, stage
ORDER BY app, generator, number
