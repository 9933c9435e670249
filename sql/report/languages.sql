-- Grain: one language of the claims of one app and generator of the night.
-- Inputs: nightly_languages. Parameters: $recipe, $night.
SELECT app, generator, language, n, n_judged, n_supported, n_unread, share, share_low, share_high
FROM nightly_languages
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, n DESC, language
