-- grain: one night of one app and generator under one recipe of method `citations`
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
        count(*) FILTER (citation_status = 'scored') AS n_scored,
        count(*) FILTER (citation_status = 'na') AS n_na,
        count(*) FILTER (citation_status = 'unjudged') AS n_unjudged,
        count(*) FILTER (citation_status = 'abstained') AS n_abstained,
        avg(citation_groundedness) AS citation_avg,
        quantile_cont(citation_groundedness, [0.05, 0.25, 0.5, 0.75, 0.95]) AS citation_at,
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
    round(round(citation_avg, 12), 6) AS citation_groundedness_mean,
    i.low AS citation_groundedness_low,
    i.high AS citation_groundedness_high,
    round(round(citation_at[1], 12), 6) AS citation_groundedness_p05,
    round(round(citation_at[2], 12), 6) AS citation_groundedness_p25,
    round(round(citation_at[3], 12), 6) AS citation_groundedness_p50,
    round(round(citation_at[4], 12), 6) AS citation_groundedness_p75,
    round(round(citation_at[5], 12), 6) AS citation_groundedness_p95,
    segments_total,
    segments_judged,
    segments_true,
    segments_cited,
    segments_cited_judged,
    segments_cited_true,
    segments_dangling,
    segments_unjudged,
    segments_abstained
FROM night
LEFT JOIN intervals AS i
    ON i.number = 'citation_groundedness' AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator
