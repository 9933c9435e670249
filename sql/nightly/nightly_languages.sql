-- grain: one language of the claims of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown (see shown_languages.sql) of the same, intervals (number, low and high
--   by date, app and generator)
-- Shares are of all claims (docs/methods.md#claims).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_total)::BIGINT AS claims_total
    FROM trace_scores
    GROUP BY ALL
),
by_language AS (
    SELECT
        app,
        generator,
        judge_version,
        name AS language,
        sum(n)::BIGINT AS n,
        sum(n_judged)::BIGINT AS n_judged,
        sum(n_supported)::BIGINT AS n_supported,
        sum(n_unread)::BIGINT AS n_unread
    FROM shown
    GROUP BY ALL
)
SELECT
    * EXCLUDE (ends),
    n / claims_total AS share,
    ends[language].low AS share_low,
    ends[language].high AS share_high
FROM night
JOIN by_language USING (app, generator, judge_version)
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, language
