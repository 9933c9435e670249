-- grain: one number of one night of one app and generator; per question, count and sum over the night's traces, and
--   count
-- and sum of changes by people's labels over reviewed traces of all nights
-- inputs: trace_scores of one recipe and day, reviewed_traces of the same recipe and all days
-- The sums behind `nightly_corrected` (docs/methods.md#noise-and-confidence). Traces that were picked for review
-- because of their labels are left out. The four lists have the same questions in the same order.
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, question, number, count(*) AS n, sum(score) AS total
    FROM (
        UNPIVOT (
            SELECT
                recipe,
                date,
                app,
                generator,
                judge_version,
                coalesce(question_id, trace_id) AS question, -- null if the text was removed
                groundedness_score AS groundedness,
                faithfulness
            FROM trace_scores
        )
        ON groundedness, faithfulness INTO NAME number VALUE score
    )
    GROUP BY ALL
),
change AS (
    SELECT app, generator, question, number, count(*) AS n, sum(score) AS total
    FROM (
        UNPIVOT (
            SELECT
                app,
                generator,
                coalesce(question_id, trace_id) AS question,
                groundedness_people - groundedness_judge AS groundedness,
                faithfulness_people - faithfulness_judge AS faithfulness
            FROM reviewed_traces
        )
        ON groundedness, faithfulness INTO NAME number VALUE score
    )
    GROUP BY ALL
),
night_key AS (
    SELECT DISTINCT recipe, date, app, generator, judge_version, number
    FROM night
),
question AS (
    SELECT app, generator, number, question FROM night
    UNION
    SELECT app, generator, number, question FROM change
)
SELECT
    night_key.*,
    list(coalesce(night.n, 0)::DOUBLE ORDER BY question) AS n,
    list(coalesce(night.total, 0) ORDER BY question) AS total,
    list(coalesce(change.n, 0)::DOUBLE ORDER BY question) AS reviewed_n,
    list(coalesce(change.total, 0) ORDER BY question) AS reviewed_change
FROM night_key
INNER JOIN question USING (app, generator, number)
LEFT JOIN night USING (app, generator, number, question)
LEFT JOIN change USING (app, generator, number, question)
GROUP BY ALL
ORDER BY app, generator, number
