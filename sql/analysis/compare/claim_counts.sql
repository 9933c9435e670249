-- grain: one outcome, or one failure pattern, of the claims of one arm
-- inputs: claim_results, trace_scores
-- parameters: $recipe; $generator, $prompt_version, $app, $first, $last (null: all)
-- An outcome is a claim's label, or without a label its status: `na`, `unjudged` or `abstained`.
WITH claim AS (
    SELECT coalesce(r.label, r.status) AS outcome, r.patterns
    FROM claim_results AS r
    JOIN trace_scores AS s ON s.recipe = r.recipe AND s.date = r.date AND s.trace_id = r.trace_id
    WHERE
        r.recipe = $recipe
        AND coalesce(s.generator = $generator::VARCHAR, TRUE)
        AND ($prompt_version::VARCHAR IS NULL OR s.prompt_version = $prompt_version::VARCHAR)
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND r.date BETWEEN coalesce($first::DATE, r.date) AND coalesce($last::DATE, r.date)
)
SELECT 'outcome' AS kind, outcome AS name, count(*) AS n
FROM claim
GROUP BY outcome
UNION ALL
SELECT 'pattern' AS kind, pattern AS name, count(*) AS n
FROM (SELECT unnest(patterns) AS pattern FROM claim)
GROUP BY pattern
ORDER BY kind, name
