-- grain: one diagnosis of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day
-- Shares are of the traces that have a diagnosis, with 95% Wilson intervals; `none` has no share.
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
            THEN sum(n) FILTER (diagnosis <> 'none') OVER (PARTITION BY recipe, date, app, generator, judge_version)
        END::DOUBLE AS total,
        1.959964 AS z
    FROM diagnosed
),
wilson AS (
    SELECT
        *,
        n / total AS p,
        (n / total + z * z / (2 * total)) / (1 + z * z / total) AS centre,
        z * sqrt(n / total * (1 - n / total) / total + z * z / (4 * total * total)) / (1 + z * z / total) AS half
    FROM shared
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    diagnosis,
    n,
    CASE WHEN diagnosis <> 'none' THEN p END AS share,
    CASE WHEN diagnosis <> 'none' THEN greatest(0, centre - half) END AS share_low,
    CASE WHEN diagnosis <> 'none' THEN least(1, centre + half) END AS share_high
FROM wilson
ORDER BY app, generator, diagnosis
