-- grain: one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day
-- Numbers are rounded to 6 decimals: the last digit must not depend on the order in which rows were read.
-- Intervals: mean ± 1.96 standard errors over traces, cut at the ends of the scale; none below two scored traces.
-- Utilization is scored exactly where groundedness is.
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    count(*) AS n,
    count(*) FILTER (groundedness_status = 'scored') AS n_scored,
    count(*) FILTER (groundedness_status = 'na') AS n_na,
    count(*) FILTER (groundedness_status = 'unjudged') AS n_unjudged,
    count(*) FILTER (groundedness_status = 'abstained') AS n_abstained,
    round(avg(utilization), 6) AS utilization_mean,
    CASE WHEN count(utilization) > 1
        THEN round(greatest(0, avg(utilization) - 1.959964 * stddev_samp(utilization) / sqrt(count(utilization))), 6)
    END AS utilization_low,
    CASE WHEN count(utilization) > 1
        THEN round(least(1, avg(utilization) + 1.959964 * stddev_samp(utilization) / sqrt(count(utilization))), 6)
    END AS utilization_high,
    round(quantile_cont(utilization, 0.05), 6) AS utilization_p05,
    round(quantile_cont(utilization, 0.25), 6) AS utilization_p25,
    round(quantile_cont(utilization, 0.50), 6) AS utilization_p50,
    round(quantile_cont(utilization, 0.75), 6) AS utilization_p75,
    round(quantile_cont(utilization, 0.95), 6) AS utilization_p95,
    coalesce(sum(chunks_retrieved) FILTER (utilization IS NOT NULL), 0)::BIGINT AS chunks_retrieved,
    coalesce(sum(chunks_used), 0)::BIGINT AS chunks_used,
    coalesce(sum(chunks_relevant), 0)::BIGINT AS chunks_relevant
FROM trace_scores
GROUP BY recipe, date, app, generator, judge_version
ORDER BY app, generator
