-- grain: one diagnosis of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, intervals (number, low and high by date, app and generator)
-- Shares are of the traces that have a diagnosis; `none` has no share.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH diagnosed AS (
    SELECT recipe, date, app, generator, judge_version, coalesce(diagnosis, 'none') AS diagnosis, count(*) AS n
    FROM trace_scores
    GROUP BY ALL
),
shared AS (
    SELECT
        *,
        -- Null for 'none', which may be more traces than all that have a diagnosis.
        CASE WHEN diagnosis <> 'none'
            THEN n / sum(n) FILTER (diagnosis <> 'none') OVER (PARTITION BY recipe, date, app, generator, judge_version)
        END AS share
    FROM diagnosed
)
SELECT
    recipe,
    shared.date,
    shared.app,
    shared.generator,
    judge_version,
    diagnosis,
    n,
    share,
    i.low AS share_low,
    i.high AS share_high
FROM shared
LEFT JOIN intervals AS i
    ON i.number = 'diagnosis_' || diagnosis
    AND (i.date, i.app, i.generator) = (shared.date, shared.app, shared.generator)
ORDER BY shared.app, shared.generator, diagnosis
