-- grain: one failure pattern of one night of one app and generator under one recipe
-- inputs: trace_scores, claim_results and claim_patterns of one recipe and day
-- parameters: $patterns (the names that the recipe looks for)
-- METHODS section 12. Shares are of the judged claims, with 95% Wilson intervals. What shows a pattern and was not judged
-- is in no share, and is counted.
WITH claim AS (
    SELECT
        s.recipe,
        s.date,
        s.app,
        s.generator,
        s.judge_version,
        r.claim_id,
        r.label IS NOT NULL AS judged
    FROM trace_scores AS s
    JOIN claim_results AS r USING (trace_id)
),
night AS (
    SELECT recipe, date, app, generator, judge_version, count(*) FILTER (judged) AS claims_judged
    FROM claim
    GROUP BY ALL
),
counted AS (
    SELECT
        night.*,
        name.pattern,
        count(*) FILTER (claim.judged) AS n,
        count(*) FILTER (NOT claim.judged) AS n_not_judged
    FROM night
    CROSS JOIN (SELECT unnest($patterns::VARCHAR[]) AS pattern) AS name
    LEFT JOIN (claim JOIN claim_patterns AS p USING (claim_id))
        ON p.pattern = name.pattern AND claim.app = night.app AND claim.generator = night.generator
        AND claim.judge_version = night.judge_version
    GROUP BY ALL
),
wilson AS (
    SELECT
        *,
        n / total AS p,
        (n / total + z * z / (2 * total)) / (1 + z * z / total) AS centre,
        z * sqrt(n / total * (1 - n / total) / total + z * z / (4 * total * total)) / (1 + z * z / total) AS half
    FROM (SELECT *, nullif(claims_judged, 0)::DOUBLE AS total, 1.959964 AS z FROM counted)
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    pattern,
    n,
    n_not_judged,
    claims_judged,
    p AS share,
    CASE WHEN p IS NOT NULL THEN greatest(0, centre - half) END AS share_low,
    CASE WHEN p IS NOT NULL THEN least(1, centre + half) END AS share_high
FROM wilson
ORDER BY app, generator, pattern
