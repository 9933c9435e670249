-- grain: one night of one app and generator under one recipe
-- inputs: trace_grace, nightly_grace_sources, of one recipe and day, intervals (number, low and high by date, app and
--   generator)
-- Accuracy is hits / annotated traces. Micro: over all sources together. Macro: the unweighted mean over the sources
-- that are right for some trace and have the number (docs/methods.md#grace-citations-as-classification).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        count(*) AS n,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(*) FILTER (status = 'na') AS n_na,
        count(*) FILTER (outcome = 'hit') AS hits,
        count(*) FILTER (outcome = 'not_retrieved') AS not_retrieved,
        count(*) FILTER (outcome = 'retrieved_not_cited') AS retrieved_not_cited,
        count(*) FILTER (outcome = 'cited_another') AS cited_another,
        count(*) FILTER (outcome = 'cited_nothing') AS cited_nothing
    FROM trace_grace
    GROUP BY recipe, date, app, generator
),
sources AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        count(*) FILTER (support > 0) AS sources,
        count(precision) FILTER (support > 0) AS sources_precision,
        count(recall) FILTER (support > 0) AS sources_recall,
        count(f1) FILTER (support > 0) AS sources_f1,
        sum(true_positives) AS tp,
        sum(false_positives) AS fp,
        sum(false_negatives) AS fn,
        rounded(avg(precision) FILTER (support > 0)) AS precision_macro,
        rounded(avg(recall) FILTER (support > 0)) AS recall_macro,
        rounded(avg(f1) FILTER (support > 0)) AS f1_macro
    FROM nightly_grace_sources
    GROUP BY recipe, date, app, generator
)
SELECT
    night.*,
    hits / nullif(n_scored, 0) AS accuracy,
    ends['accuracy'].low AS accuracy_low,
    ends['accuracy'].high AS accuracy_high,
    tp / nullif(tp + fp, 0) AS precision_micro,
    ends['precision_micro'].low AS precision_micro_low,
    ends['precision_micro'].high AS precision_micro_high,
    tp / nullif(tp + fn, 0) AS recall_micro,
    ends['recall_micro'].low AS recall_micro_low,
    ends['recall_micro'].high AS recall_micro_high,
    2 * tp / nullif(2 * tp + fp + fn, 0) AS f1_micro,
    ends['f1_micro'].low AS f1_micro_low,
    ends['f1_micro'].high AS f1_micro_high,
    precision_macro,
    ends['precision_macro'].low AS precision_macro_low,
    ends['precision_macro'].high AS precision_macro_high,
    recall_macro,
    ends['recall_macro'].low AS recall_macro_low,
    ends['recall_macro'].high AS recall_macro_high,
    f1_macro,
    ends['f1_macro'].low AS f1_macro_low,
    ends['f1_macro'].high AS f1_macro_high,
    coalesce(sources, 0) AS sources,
    coalesce(sources_precision, 0) AS sources_precision,
    coalesce(sources_recall, 0) AS sources_recall,
    coalesce(sources_f1, 0) AS sources_f1
FROM night
LEFT JOIN sources USING (recipe, date, app, generator)
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator
