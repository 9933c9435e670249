-- grain: one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Utilization is scored if and only if groundedness is (docs/methods.md#scores-of-one-trace).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
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
        rounded(avg(utilization)) AS utilization_mean,
        percentiles(utilization) AS p,
        coalesce(sum(chunks_retrieved) FILTER (utilization IS NOT NULL), 0)::BIGINT AS chunks_retrieved,
        coalesce(sum(chunks_used), 0)::BIGINT AS chunks_used,
        coalesce(sum(chunks_relevant), 0)::BIGINT AS chunks_relevant
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
)
SELECT
    night.* EXCLUDE (p),
    ends['utilization'].low AS utilization_low,
    ends['utilization'].high AS utilization_high,
    p[1] AS utilization_p05,
    p[2] AS utilization_p25,
    p[3] AS utilization_p50,
    p[4] AS utilization_p75,
    p[5] AS utilization_p95
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator
