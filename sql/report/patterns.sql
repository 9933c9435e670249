-- Grain: one failure pattern of one app and generator of the night.
-- Inputs: nightly_patterns. Parameters: $recipe, $night.
SELECT app, generator, pattern, n, n_not_judged, claims_judged, share, share_low, share_high
FROM nightly_patterns
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, pattern
