-- grain: one language of the claims of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown (see shown_languages.sql) of the same, intervals (number, low and high
--   by date, app and generator)
-- METHODS section 2. Shares are of all claims.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_total)::BIGINT AS claims_total
    FROM trace_scores
    GROUP BY ALL
),
language AS (
    SELECT
        app,
        generator,
        judge_version,
        name,
        sum(n)::BIGINT AS n,
        sum(n_judged)::BIGINT AS n_judged,
        sum(n_supported)::BIGINT AS n_supported,
        sum(n_unread)::BIGINT AS n_unread
    FROM shown
    GROUP BY ALL
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    language.name AS language,
    language.n,
    n_judged,
    n_supported,
    n_unread,
    claims_total,
    language.n / claims_total AS share,
    i.low AS share_low,
    i.high AS share_high
FROM night
JOIN language USING (app, generator, judge_version)
LEFT JOIN intervals AS i
    ON i.number = language.name AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator, language
