-- grain: one night of one app and generator under one recipe
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
        count(*) FILTER (groundedness_status = 'scored') AS n_scored,
        count(*) FILTER (groundedness_status = 'na') AS n_na,
        count(*) FILTER (groundedness_status = 'unjudged') AS n_unjudged,
        count(*) FILTER (groundedness_status = 'abstained') AS n_abstained,
        count(*) FILTER (groundedness_na = 'no_answer') AS n_no_answer,
        count(*) FILTER (groundedness_na = 'refusal') AS n_refusal,
        rounded(avg(groundedness_score)) AS groundedness_mean,
        percentiles(groundedness_score) AS p,
        rounded(avg(faithfulness)) AS faithfulness_mean,
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
        sum(claims_unread)::BIGINT AS claims_unread,
        sum(claims_to_check)::BIGINT AS claims_to_check,
        rounded(avg(citation_recall)) AS citation_recall_mean,
        rounded(avg(citation_precision)) AS citation_precision_mean,
        sum(citations_dangling)::BIGINT AS citations_dangling
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
)
SELECT
    night.* EXCLUDE (p),
    ends['groundedness'].low AS groundedness_low,
    ends['groundedness'].high AS groundedness_high,
    p[1] AS groundedness_p05,
    p[2] AS groundedness_p25,
    p[3] AS groundedness_p50,
    p[4] AS groundedness_p75,
    p[5] AS groundedness_p95,
    ends['faithfulness'].low AS faithfulness_low,
    ends['faithfulness'].high AS faithfulness_high,
    claims_misused / nullif(claims_judged, 0) AS misused_share,
    ends['misused'].low AS misused_share_low,
    ends['misused'].high AS misused_share_high,
    claims_to_check / nullif(claims_supported, 0) AS to_check_share,
    ends['to_check'].low AS to_check_share_low,
    ends['to_check'].high AS to_check_share_high,
    ends['citation_recall'].low AS citation_recall_low,
    ends['citation_recall'].high AS citation_recall_high,
    ends['citation_precision'].low AS citation_precision_low,
    ends['citation_precision'].high AS citation_precision_high
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator
