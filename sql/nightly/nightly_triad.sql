-- grain: one diagnosis of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Shares are of the traces that have a diagnosis; `none` has no share (docs/methods.md#the-triad-which-layer-failed).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, coalesce(diagnosis, 'none') AS diagnosis, count(*) AS n
    FROM trace_scores
    GROUP BY ALL
)
SELECT
    night.*,
    -- Null for 'none', whose traces are not part of the denominator.
    CASE WHEN diagnosis <> 'none'
        THEN n / sum(n) FILTER (diagnosis <> 'none') OVER (PARTITION BY recipe, date, app, generator, judge_version)
    END AS share,
    ends['diagnosis_' || diagnosis].low AS share_low,
    ends['diagnosis_' || diagnosis].high AS share_high
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, diagnosis
