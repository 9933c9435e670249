-- grain: one failure pattern of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, shown (see shown_patterns.sql) of the same, intervals (number, low
--   and high by date, app and generator)
-- parameters: $names (the recipe's patterns)
-- Shares are of judged claims. Claims that show a pattern but were not judged are counted separately
-- (docs/methods.md#failure-patterns).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        sum(claims_judged)::BIGINT AS claims_judged,
        unnest($names::VARCHAR[]) AS pattern
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version
    HAVING sum(claims_total) > 0
),
found AS (
    SELECT
        app,
        generator,
        judge_version,
        name AS pattern,
        sum(n)::BIGINT AS n,
        sum(n_not_judged)::BIGINT AS n_not_judged
    FROM shown
    GROUP BY ALL
)
SELECT
    night.*,
    coalesce(n, 0) AS n,
    coalesce(n_not_judged, 0) AS n_not_judged,
    coalesce(n, 0) / nullif(claims_judged, 0) AS share,
    ends[pattern].low AS share_low,
    ends[pattern].high AS share_high
FROM night
LEFT JOIN found USING (app, generator, judge_version, pattern)
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, pattern
