-- grain: one night of one app and generator under one recipe
-- inputs: trace_grace, nightly_grace_sources, of one recipe and day, intervals (number, low and high by date, app and
--   generator)
-- METHODS section 8. Accuracy is hits / annotated traces. Micro: over all sources together. Macro: the plain mean over
-- the sources that are right of some trace, as far as each has the number.
-- Means are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even where
-- it falls on a tie.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
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
        avg(precision) FILTER (support > 0) AS precision_macro,
        avg(recall) FILTER (support > 0) AS recall_macro,
        avg(f1) FILTER (support > 0) AS f1_macro
    FROM nightly_grace_sources
    GROUP BY recipe, date, app, generator
),
ends AS (
    SELECT date, app, generator, map(list(number), list({'low': low, 'high': high})) AS of
    FROM intervals
    GROUP BY date, app, generator
)
SELECT
    recipe,
    date,
    app,
    generator,
    n,
    n_scored,
    n_na,
    hits,
    not_retrieved,
    retrieved_not_cited,
    cited_another,
    cited_nothing,
    hits / nullif(n_scored, 0) AS accuracy,
    ends.of['accuracy'].low AS accuracy_low,
    ends.of['accuracy'].high AS accuracy_high,
    tp / nullif(tp + fp, 0) AS precision_micro,
    ends.of['precision_micro'].low AS precision_micro_low,
    ends.of['precision_micro'].high AS precision_micro_high,
    tp / nullif(tp + fn, 0) AS recall_micro,
    ends.of['recall_micro'].low AS recall_micro_low,
    ends.of['recall_micro'].high AS recall_micro_high,
    2 * tp / nullif(2 * tp + fp + fn, 0) AS f1_micro,
    ends.of['f1_micro'].low AS f1_micro_low,
    ends.of['f1_micro'].high AS f1_micro_high,
    round(round(precision_macro, 12), 6) AS precision_macro,
    ends.of['precision_macro'].low AS precision_macro_low,
    ends.of['precision_macro'].high AS precision_macro_high,
    round(round(recall_macro, 12), 6) AS recall_macro,
    ends.of['recall_macro'].low AS recall_macro_low,
    ends.of['recall_macro'].high AS recall_macro_high,
    round(round(f1_macro, 12), 6) AS f1_macro,
    ends.of['f1_macro'].low AS f1_macro_low,
    ends.of['f1_macro'].high AS f1_macro_high,
    coalesce(sources, 0) AS sources,
    coalesce(sources_precision, 0) AS sources_precision,
    coalesce(sources_recall, 0) AS sources_recall,
    coalesce(sources_f1, 0) AS sources_f1
FROM night
LEFT JOIN sources USING (recipe, date, app, generator)
LEFT JOIN ends USING (date, app, generator)
ORDER BY app, generator
