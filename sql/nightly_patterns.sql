-- grain: one failure pattern of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown_patterns (see shown_patterns.sql) of the same, intervals (number, low
--   and high by date, app and generator)
-- parameters: $patterns (the names that the recipe looks for)
-- METHODS section 12. Shares are of the judged claims. What shows a pattern and was not judged is in no share, and is
-- counted.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_judged)::BIGINT AS claims_judged
    FROM trace_scores
    GROUP BY ALL
    HAVING sum(claims_total) > 0
),
shown AS (
    SELECT app, generator, judge_version, pattern, sum(n)::BIGINT AS n, sum(n_not_judged)::BIGINT AS n_not_judged
    FROM shown_patterns
    GROUP BY ALL
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    name.pattern,
    coalesce(shown.n, 0) AS n,
    coalesce(n_not_judged, 0) AS n_not_judged,
    claims_judged,
    coalesce(shown.n, 0) / nullif(claims_judged, 0) AS share,
    i.low AS share_low,
    i.high AS share_high
FROM night
CROSS JOIN (SELECT unnest($patterns::VARCHAR[]) AS pattern) AS name
LEFT JOIN shown USING (app, generator, judge_version, pattern)
LEFT JOIN intervals AS i
    ON i.number = name.pattern AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator, name.pattern
