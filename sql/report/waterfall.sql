-- Grain: one stage of the waterfall, or `sent`, of one app and generator of the night.
-- Inputs: nightly_waterfall. Parameters: $recipe, $night.
SELECT
    app, generator, stage, n, n_reached, n_stopped, n_uncertain, share, share_low, share_high,
    n_reviewed, n_wrong, wrong_share, wrong_low, wrong_high
FROM nightly_waterfall
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, position
