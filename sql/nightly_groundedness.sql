-- grain: one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day
-- Numbers are rounded to 6 decimals: the last digit must not depend on the order in which rows were read.
-- Intervals: mean ± 1.96 standard errors over traces, cut at the ends of the scale; none below two scored traces.
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
    round(avg(groundedness_score), 6) AS groundedness_mean,
    CASE WHEN count(groundedness_score) > 1
        THEN round(greatest(0, avg(groundedness_score) - 1.959964 * stddev_samp(groundedness_score) / sqrt(count(groundedness_score))), 6)
    END AS groundedness_low,
    CASE WHEN count(groundedness_score) > 1
        THEN round(least(100, avg(groundedness_score) + 1.959964 * stddev_samp(groundedness_score) / sqrt(count(groundedness_score))), 6)
    END AS groundedness_high,
    round(quantile_cont(groundedness_score, 0.05), 6) AS groundedness_p05,
    round(quantile_cont(groundedness_score, 0.25), 6) AS groundedness_p25,
    round(quantile_cont(groundedness_score, 0.50), 6) AS groundedness_p50,
    round(quantile_cont(groundedness_score, 0.75), 6) AS groundedness_p75,
    round(quantile_cont(groundedness_score, 0.95), 6) AS groundedness_p95,
    round(avg(faithfulness), 6) AS faithfulness_mean,
    CASE WHEN count(faithfulness) > 1
        THEN round(greatest(0, avg(faithfulness) - 1.959964 * stddev_samp(faithfulness) / sqrt(count(faithfulness))), 6)
    END AS faithfulness_low,
    CASE WHEN count(faithfulness) > 1
        THEN round(least(1, avg(faithfulness) + 1.959964 * stddev_samp(faithfulness) / sqrt(count(faithfulness))), 6)
    END AS faithfulness_high,
    sum(claims_total)::BIGINT AS claims_total,
    sum(claims_judged)::BIGINT AS claims_judged,
    sum(claims_supported)::BIGINT AS claims_supported,
    sum(claims_partial)::BIGINT AS claims_partial,
    sum(claims_unsupported)::BIGINT AS claims_unsupported,
    sum(claims_contradicted)::BIGINT AS claims_contradicted,
    sum(claims_misused)::BIGINT AS claims_misused,
    sum(claims_unjudged)::BIGINT AS claims_unjudged,
    sum(claims_abstained)::BIGINT AS claims_abstained,
    sum(citations_dangling)::BIGINT AS citations_dangling
FROM trace_scores
GROUP BY recipe, date, app, generator, judge_version
ORDER BY app, generator
