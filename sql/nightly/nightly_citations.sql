-- grain: one night of one app and generator under one recipe of method `citations`
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        count(*) AS n,
        count(*) FILTER (citation_status = 'scored') AS n_scored,
        count(*) FILTER (citation_status = 'na') AS n_na,
        count(*) FILTER (citation_status = 'unjudged') AS n_unjudged,
        count(*) FILTER (citation_status = 'abstained') AS n_abstained,
        rounded(avg(citation_groundedness)) AS citation_groundedness_mean,
        percentiles(citation_groundedness) AS p,
        coalesce(sum(segments_total), 0)::BIGINT AS segments_total,
        coalesce(sum(segments_judged), 0)::BIGINT AS segments_judged,
        coalesce(sum(segments_true), 0)::BIGINT AS segments_true,
        coalesce(sum(segments_cited), 0)::BIGINT AS segments_cited,
        coalesce(sum(segments_cited_judged), 0)::BIGINT AS segments_cited_judged,
        coalesce(sum(segments_cited_true), 0)::BIGINT AS segments_cited_true,
        coalesce(sum(segments_dangling), 0)::BIGINT AS segments_dangling,
        sum(claims_unjudged)::BIGINT AS segments_unjudged,
        sum(claims_abstained)::BIGINT AS segments_abstained
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
)
SELECT
    night.* EXCLUDE (p),
    ends['citation_groundedness'].low AS citation_groundedness_low,
    ends['citation_groundedness'].high AS citation_groundedness_high,
    p[1] AS citation_groundedness_p05,
    p[2] AS citation_groundedness_p25,
    p[3] AS citation_groundedness_p50,
    p[4] AS citation_groundedness_p75,
    p[5] AS citation_groundedness_p95
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator
