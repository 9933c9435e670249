-- grain: one failure pattern of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown (see shown_patterns.sql) of the same, intervals (number, low
--   and high by date, app and generator)
-- parameters: $names (of the patterns that the recipe looks for)
-- METHODS section 12. Shares are of the judged claims. What shows a pattern and was not judged is in no share, and is
-- counted.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_judged)::BIGINT AS claims_judged
    FROM trace_scores
    GROUP BY ALL
    HAVING sum(claims_total) > 0
),
found AS (
    SELECT app, generator, judge_version, name, sum(n)::BIGINT AS n, sum(n_not_judged)::BIGINT AS n_not_judged
    FROM shown
    GROUP BY ALL
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    pattern.name AS pattern,
    coalesce(found.n, 0) AS n,
    coalesce(n_not_judged, 0) AS n_not_judged,
    claims_judged,
    coalesce(found.n, 0) / nullif(claims_judged, 0) AS share,
    i.low AS share_low,
    i.high AS share_high
FROM night
CROSS JOIN (SELECT unnest($names::VARCHAR[]) AS name) AS pattern
LEFT JOIN found USING (app, generator, judge_version, name)
LEFT JOIN intervals AS i
    ON i.number = pattern.name AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator, pattern.name
