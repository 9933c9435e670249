-- grain: one number of one question that was asked several times on one night of one app and generator; if there is no
--   such question, one row of the number without a question
-- inputs: trace_scores of one recipe and day
-- docs/methods.md#scores-of-one-trace. A question is repeated if several traces have its question_id. The numbers
-- are groundedness and faithfulness or, for method `citations`, citation groundedness. `questions` counts all questions
-- of the night. Most questions occur once; they are only counted.
WITH question AS MATERIALIZED (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        citation_status IS NOT NULL AS cites,
        count(*) AS n,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'scored') AS n_scored,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'na') AS n_na,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'unjudged') AS n_unjudged,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'abstained') AS n_abstained,
        variation(groundedness_score) AS groundedness,
        variation(faithfulness) AS faithfulness,
        variation(citation_groundedness) AS citation_groundedness
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version, cites, coalesce(question_id, trace_id) -- null if redacted
),
counted AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        unnest(if(cites, ['citation_groundedness'], ['groundedness', 'faithfulness'])) AS number,
        count(*) AS questions
    FROM question
    GROUP BY recipe, date, app, generator, judge_version, cites
),
repeated AS (
    SELECT recipe, date, app, generator, judge_version, n, n_scored, n_na, n_unjudged, n_abstained, number, score.*
    FROM (
        UNPIVOT (FROM question WHERE n > 1)
        ON groundedness, faithfulness, citation_groundedness INTO NAME number VALUE score
    )
    WHERE cites = (number = 'citation_groundedness')
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    number,
    questions,
    n,
    n_scored,
    n_na,
    n_unjudged,
    n_abstained,
    varied,
    mean,
    variance,
    reach
FROM counted
LEFT JOIN repeated USING (recipe, date, app, generator, judge_version, number)
ORDER BY app, generator, number, n, n_scored, mean
