-- Grain: one app and generator of the night, against its annotated right sources.
-- Inputs: nightly_grace. Parameters: $recipe, $night.
SELECT
    app, generator, n, n_scored, n_na, hits AS hit, not_retrieved, retrieved_not_cited, cited_another, cited_nothing,
    accuracy, accuracy_low, accuracy_high, f1_micro, f1_micro_low, f1_micro_high, f1_macro, f1_macro_low, f1_macro_high,
    sources
FROM nightly_grace
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator
