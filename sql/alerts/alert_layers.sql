-- grain: one diagnosis of one app and generator, over the nights of a change and over those before it
-- inputs: nightly_triad of one recipe, of these nights
-- parameters: $app, $generator, $days, $days_before
-- Traces without a diagnosis are left out.
SELECT
    diagnosis,
    coalesce(sum(n) FILTER (list_contains($days::DATE[], date)), 0)::BIGINT AS n,
    coalesce(sum(n) FILTER (list_contains($days_before::DATE[], date)), 0)::BIGINT AS n_before
FROM nightly_triad
WHERE app = $app AND generator = $generator AND diagnosis <> 'none'
GROUP BY diagnosis
ORDER BY diagnosis
