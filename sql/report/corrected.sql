-- Grain: one number of one app and generator of the night that people's labels correct.
-- Inputs: nightly_corrected. Parameters: $recipe, $night.
SELECT
    app, generator, number AS metric, corrected_mean AS mean, corrected_low AS low, corrected_high AS high, n_reviewed,
    n_reviewed_questions
FROM nightly_corrected
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, number
