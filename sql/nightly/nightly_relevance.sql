-- grain: one night of one app and generator under one recipe; answer, context and answerability apart
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
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
        count(*) AS n,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(*) FILTER (status = 'na') AS n_na,
        count(*) FILTER (status = 'unjudged') AS n_unjudged,
        count(*) FILTER (status = 'abstained') AS n_abstained,
        avg(relevance) AS relevance_avg,
        quantile_cont(relevance, [0.05, 0.25, 0.5, 0.75, 0.95]) AS relevance_at
    FROM score
    GROUP BY recipe, date, app, generator, judge_version, kind
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    kind,
    n,
    n_scored,
    n_na,
    n_unjudged,
    n_abstained,
    round(round(relevance_avg, 12), 6) AS relevance_mean,
    i.low AS relevance_low,
    i.high AS relevance_high,
    round(round(relevance_at[1], 12), 6) AS relevance_p05,
    round(round(relevance_at[2], 12), 6) AS relevance_p25,
    round(round(relevance_at[3], 12), 6) AS relevance_p50,
    round(round(relevance_at[4], 12), 6) AS relevance_p75,
    round(round(relevance_at[5], 12), 6) AS relevance_p95
FROM night
LEFT JOIN intervals AS i
    ON i.number = CASE WHEN night.kind = 'answerability' THEN kind ELSE night.kind || '_relevance' END
    AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator, kind
