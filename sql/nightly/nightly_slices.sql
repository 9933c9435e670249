-- grain: one value of one slice of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown (see shown_slices.sql) of the same, shares and scores (number, low and
--   high by date, app and generator)
-- Shares are of all claims (docs/methods.md#slices).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_total)::BIGINT AS claims_total
    FROM trace_scores
    GROUP BY ALL
),
by_value AS (
    SELECT
        app,
        generator,
        judge_version,
        name,
        sum(traces)::BIGINT AS n,
        sum(scored)::BIGINT AS n_scored,
        sum(na)::BIGINT AS n_na,
        sum(unjudged)::BIGINT AS n_unjudged,
        sum(abstained)::BIGINT AS n_abstained,
        rounded(sum(score_total) / nullif(sum(scored), 0)) AS score_mean,
        sum(n)::BIGINT AS claims,
        sum(n_judged)::BIGINT AS claims_judged,
        sum(n_supported)::BIGINT AS claims_supported,
        sum(n_misused)::BIGINT AS claims_misused,
        sum(n_unread)::BIGINT AS claims_unread
    FROM shown
    GROUP BY ALL
)
SELECT
    * EXCLUDE (name, share_ends, score_ends),
    name ->> 0 AS slice,
    name ->> 1 AS value,
    score_ends[name].low AS score_low,
    score_ends[name].high AS score_high,
    claims / nullif(claims_total, 0) AS share,
    share_ends[name].low AS share_low,
    share_ends[name].high AS share_high
FROM night
JOIN by_value USING (app, generator, judge_version)
LEFT JOIN (SELECT * RENAME (ends AS share_ends) FROM ends_of('shares')) USING (date, app, generator)
LEFT JOIN (SELECT * RENAME (ends AS score_ends) FROM ends_of('scores')) USING (date, app, generator)
ORDER BY app, generator, slice, value
