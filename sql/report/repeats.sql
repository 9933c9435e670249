-- Grain: one app and generator of the night that were asked a question more than once: how far its answers differ.
-- Inputs: nightly_repeats. Parameters: $recipe, $night.
SELECT app, generator, questions_repeated, n, questions_compared, spread, "range", share_repeats
FROM nightly_repeats
WHERE recipe = $recipe AND date = $night AND number <> 'faithfulness' AND questions_repeated > 0
ORDER BY app, generator
