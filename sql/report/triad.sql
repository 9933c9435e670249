-- Grain: one diagnosis of one app and generator of the night.
-- Inputs: nightly_triad. Parameters: $recipe, $night.
SELECT app, generator, diagnosis, n, share, share_low, share_high
FROM nightly_triad
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, diagnosis
