-- grain: one night of one app and generator under one recipe
-- inputs: trace_grace, nightly_grace_sources, of one recipe and day
-- METHODS section 8. Accuracy is hits / annotated traces, with its 95% Wilson interval. Micro: over all sources
-- together. Macro: the plain mean over the sources that are right of some trace, as far as each has the number.
-- Means are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even where
-- it falls on a tie.
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
wilson AS (
    SELECT
        *,
        1.959964 AS z,
        nullif(n_scored, 0)::DOUBLE AS total,
        hits / total AS p,
        (p + z * z / (2 * total)) / (1 + z * z / total) AS centre,
        z * sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total) AS half
    FROM night
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
    p AS accuracy,
    CASE WHEN p IS NOT NULL THEN greatest(0, centre - half) END AS accuracy_low,
    CASE WHEN p IS NOT NULL THEN least(1, centre + half) END AS accuracy_high,
    tp / nullif(tp + fp, 0) AS precision_micro,
    tp / nullif(tp + fn, 0) AS recall_micro,
    2 * tp / nullif(2 * tp + fp + fn, 0) AS f1_micro,
    round(round(precision_macro, 12), 6) AS precision_macro,
    round(round(recall_macro, 12), 6) AS recall_macro,
    round(round(f1_macro, 12), 6) AS f1_macro,
    coalesce(sources, 0) AS sources,
    coalesce(sources_precision, 0) AS sources_precision,
    coalesce(sources_recall, 0) AS sources_recall,
    coalesce(sources_f1, 0) AS sources_f1
FROM wilson
LEFT JOIN sources USING (recipe, date, app, generator)
ORDER BY app, generator
