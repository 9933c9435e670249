-- grain: one night of one app and generator under one recipe, answer and context apart
-- inputs: trace_scores of one recipe and day
-- Numbers are rounded to 6 decimals: the last digit must not depend on the order in which rows were read.
-- Intervals: mean ± 1.96 standard errors over traces, cut at the ends of the scale; none below two scored traces.
WITH score AS (
    SELECT *, 'answer' AS kind, answer_relevance_status AS status, answer_relevance AS relevance FROM trace_scores
    UNION ALL
    SELECT *, 'context' AS kind, context_relevance_status AS status, context_relevance AS relevance FROM trace_scores
)
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
    round(avg(relevance), 6) AS relevance_mean,
    CASE WHEN count(relevance) > 1
        THEN round(greatest(0, avg(relevance) - 1.959964 * stddev_samp(relevance) / sqrt(count(relevance))), 6)
    END AS relevance_low,
    CASE WHEN count(relevance) > 1
        THEN round(least(1, avg(relevance) + 1.959964 * stddev_samp(relevance) / sqrt(count(relevance))), 6)
    END AS relevance_high,
    round(quantile_cont(relevance, 0.05), 6) AS relevance_p05,
    round(quantile_cont(relevance, 0.25), 6) AS relevance_p25,
    round(quantile_cont(relevance, 0.50), 6) AS relevance_p50,
    round(quantile_cont(relevance, 0.75), 6) AS relevance_p75,
    round(quantile_cont(relevance, 0.95), 6) AS relevance_p95
FROM score
GROUP BY recipe, date, app, generator, judge_version, kind
ORDER BY app, generator, kind
