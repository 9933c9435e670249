-- grain: one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
-- Utilization is scored exactly where groundedness is.
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
        avg(utilization) AS utilization_avg,
        quantile_cont(utilization, [0.05, 0.25, 0.5, 0.75, 0.95]) AS utilization_at,
        coalesce(sum(chunks_retrieved) FILTER (utilization IS NOT NULL), 0)::BIGINT AS chunks_retrieved,
        coalesce(sum(chunks_used), 0)::BIGINT AS chunks_used,
        coalesce(sum(chunks_relevant), 0)::BIGINT AS chunks_relevant
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
    round(round(utilization_avg, 12), 6) AS utilization_mean,
    i.low AS utilization_low,
    i.high AS utilization_high,
    round(round(utilization_at[1], 12), 6) AS utilization_p05,
    round(round(utilization_at[2], 12), 6) AS utilization_p25,
    round(round(utilization_at[3], 12), 6) AS utilization_p50,
    round(round(utilization_at[4], 12), 6) AS utilization_p75,
    round(round(utilization_at[5], 12), 6) AS utilization_p95,
    chunks_retrieved,
    chunks_used,
    chunks_relevant
FROM night
LEFT JOIN intervals AS i
    ON i.number = 'utilization' AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator
