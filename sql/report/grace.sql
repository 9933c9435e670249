-- Grain: one app and generator of the night, against its annotated right sources.
-- Inputs: nightly_grace. Parameters: $recipe, $night.
SELECT
    app, generator, n, n_scored, n_na, hits AS hit, not_retrieved, retrieved_not_cited, cited_another, cited_nothing,
    accuracy, accuracy_low, accuracy_high, precision_micro, recall_micro, f1_micro, precision_macro, recall_macro,
    f1_macro, sources
FROM nightly_grace
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator
