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
        count(*) FILTER (groundedness_na = 'no_answer') AS n_no_answer,
        count(*) FILTER (groundedness_na = 'refusal') AS n_refusal,
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
        sum(claims_unread)::BIGINT AS claims_unread,
        sum(claims_to_check)::BIGINT AS claims_to_check,
        avg(citation_recall) AS citation_recall_avg,
        avg(citation_precision) AS citation_precision_avg,
        sum(citations_dangling)::BIGINT AS citations_dangling
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
),
ends AS (
    SELECT date, app, generator, map(list(number), list({'low': low, 'high': high})) AS of
    FROM intervals
    GROUP BY date, app, generator
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    n,
    n_scored,
    n_na,
    n_unjudged,
    n_abstained,
    n_no_answer,
    n_refusal,
    round(round(groundedness_avg, 12), 6) AS groundedness_mean,
    ends.of['groundedness'].low AS groundedness_low,
    ends.of['groundedness'].high AS groundedness_high,
    round(round(groundedness_at[1], 12), 6) AS groundedness_p05,
    round(round(groundedness_at[2], 12), 6) AS groundedness_p25,
    round(round(groundedness_at[3], 12), 6) AS groundedness_p50,
    round(round(groundedness_at[4], 12), 6) AS groundedness_p75,
    round(round(groundedness_at[5], 12), 6) AS groundedness_p95,
    round(round(faithfulness_avg, 12), 6) AS faithfulness_mean,
    ends.of['faithfulness'].low AS faithfulness_low,
    ends.of['faithfulness'].high AS faithfulness_high,
    claims_total,
    claims_judged,
    claims_supported,
    claims_partial,
    claims_unsupported,
    claims_contradicted,
    claims_misused,
    claims_misused / nullif(claims_judged, 0) AS misused_share,
    ends.of['misused'].low AS misused_share_low,
    ends.of['misused'].high AS misused_share_high,
    claims_to_check,
    claims_unjudged,
    claims_abstained,
    claims_unread,
    claims_escalated,
    round(round(citation_recall_avg, 12), 6) AS citation_recall_mean,
    ends.of['citation_recall'].low AS citation_recall_low,
    ends.of['citation_recall'].high AS citation_recall_high,
    round(round(citation_precision_avg, 12), 6) AS citation_precision_mean,
    ends.of['citation_precision'].low AS citation_precision_low,
    ends.of['citation_precision'].high AS citation_precision_high,
    citations_dangling
FROM night
LEFT JOIN ends USING (date, app, generator)
ORDER BY app, generator
