-- Grain: one app and generator of the night with repeated questions: how far their answers differ.
-- Inputs: nightly_repeats. Parameters: $recipe, $night.
SELECT
    app, generator, questions_repeated, n, questions_compared, spread, spread_low, spread_high, "range", range_low,
    range_high, share_repeats, share_repeats_low, share_repeats_high
FROM nightly_repeats
WHERE recipe = $recipe AND date = $night AND number <> 'faithfulness' AND questions_repeated > 0
ORDER BY app, generator
