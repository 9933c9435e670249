-- grain: one kind of relevance (answer, context or answerability) of one night of one app and generator under one
--   recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH score AS (
    SELECT *, 'answer' AS kind, answer_relevance_status AS status, answer_relevance AS relevance FROM trace_scores
    UNION ALL
    SELECT *, 'context' AS kind, context_relevance_status AS status, context_relevance AS relevance FROM trace_scores
    UNION ALL
    SELECT *, 'answerability' AS kind, answerability_status AS status, answerability AS relevance FROM trace_scores
),
night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        kind,
        CASE kind WHEN 'answerability' THEN kind ELSE kind || '_relevance' END AS number,
        count(*) AS n,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(*) FILTER (status = 'na') AS n_na,
        count(*) FILTER (status = 'unjudged') AS n_unjudged,
        count(*) FILTER (status = 'abstained') AS n_abstained,
        rounded(avg(relevance)) AS relevance_mean,
        percentiles(relevance) AS p
    FROM score
    GROUP BY recipe, date, app, generator, judge_version, kind
)
SELECT
    night.* EXCLUDE (number, p),
    ends[number].low AS relevance_low,
    ends[number].high AS relevance_high,
    p[1] AS relevance_p05,
    p[2] AS relevance_p25,
    p[3] AS relevance_p50,
    p[4] AS relevance_p75,
    p[5] AS relevance_p95
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, kind
