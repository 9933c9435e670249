-- grain: one failure pattern of one night of one app and generator under one recipe
-- inputs: trace_scores and claim_results of one recipe and day
-- parameters: $patterns (the names that the recipe looks for)
-- METHODS section 12. Shares are of the judged claims, with 95% Wilson intervals. What shows a pattern and was not judged
-- is in no share, and is counted.
WITH night AS (
    SELECT recipe, date, app, generator, judge_version, sum(claims_judged)::BIGINT AS claims_judged
    FROM trace_scores
    GROUP BY ALL
    HAVING sum(claims_total) > 0
),
-- Few claims show any: only these are joined, and by their traces.
shown AS (
    SELECT
        app,
        generator,
        judge_version,
        pattern,
        count(*) FILTER (judged) AS n,
        count(*) FILTER (NOT judged) AS n_not_judged
    FROM (
        SELECT trace_id, label IS NOT NULL AS judged, unnest(patterns) AS pattern
        FROM claim_results
        WHERE len(patterns) > 0
    )
    JOIN (SELECT trace_id, app, generator, judge_version FROM trace_scores) USING (trace_id)
    GROUP BY ALL
),
wilson AS (
    SELECT
        night.*,
        pattern,
        coalesce(shown.n, 0) AS n,
        coalesce(n_not_judged, 0) AS n_not_judged,
        nullif(claims_judged, 0)::DOUBLE AS total,
        1.959964 AS z,
        coalesce(shown.n, 0) / total AS p,
        (p + z * z / (2 * total)) / (1 + z * z / total) AS centre,
        z * sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total) AS half
    FROM night
    CROSS JOIN (SELECT unnest($patterns::VARCHAR[]) AS pattern) AS name
    LEFT JOIN shown USING (app, generator, judge_version, pattern)
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
