-- grain: one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH night AS (
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
        avg(groundedness_score) AS groundedness_avg,
        quantile_cont(groundedness_score, [0.05, 0.25, 0.5, 0.75, 0.95]) AS groundedness_at,
        avg(faithfulness) AS faithfulness_avg,
        sum(claims_total)::BIGINT AS claims_total,
        sum(claims_judged)::BIGINT AS claims_judged,
        sum(claims_supported)::BIGINT AS claims_supported,
        sum(claims_partial)::BIGINT AS claims_partial,
        sum(claims_unsupported)::BIGINT AS claims_unsupported,
        sum(claims_contradicted)::BIGINT AS claims_contradicted,
        sum(claims_misused)::BIGINT AS claims_misused,
        sum(claims_unjudged)::BIGINT AS claims_unjudged,
        sum(claims_abstained)::BIGINT AS claims_abstained,
        sum(claims_escalated)::BIGINT AS claims_escalated,
        sum(citations_dangling)::BIGINT AS citations_dangling
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    n,
    n_scored,
    n_na,
    n_unjudged,
    n_abstained,
    round(round(groundedness_avg, 12), 6) AS groundedness_mean,
    g.low AS groundedness_low,
    g.high AS groundedness_high,
    round(round(groundedness_at[1], 12), 6) AS groundedness_p05,
    round(round(groundedness_at[2], 12), 6) AS groundedness_p25,
    round(round(groundedness_at[3], 12), 6) AS groundedness_p50,
    round(round(groundedness_at[4], 12), 6) AS groundedness_p75,
    round(round(groundedness_at[5], 12), 6) AS groundedness_p95,
    round(round(faithfulness_avg, 12), 6) AS faithfulness_mean,
    f.low AS faithfulness_low,
    f.high AS faithfulness_high,
    claims_total,
    claims_judged,
    claims_supported,
    claims_partial,
    claims_unsupported,
    claims_contradicted,
    claims_misused,
    claims_unjudged,
    claims_abstained,
    claims_escalated,
    citations_dangling
FROM night
LEFT JOIN intervals AS g
    ON g.number = 'groundedness' AND (g.date, g.app, g.generator) = (night.date, night.app, night.generator)
LEFT JOIN intervals AS f
    ON f.number = 'faithfulness' AND (f.date, f.app, f.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator
