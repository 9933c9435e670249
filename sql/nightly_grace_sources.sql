-- grain: one source that is right of, or cited in, an annotated trace of one night, app and generator under one recipe
-- inputs: trace_grace of one recipe and day
-- METHODS section 8. Right sources of one trace stand in for one another: where one of them is cited, the others were
-- not missed. A number that nothing stands behind (the precision of what nobody cites) is null.
WITH right_source AS (
    SELECT recipe, date, app, generator, outcome, cited, unnest(gold) AS source
    FROM trace_grace
    WHERE status = 'scored'
),
cited_source AS (
    SELECT recipe, date, app, generator, gold, unnest(cited) AS source
    FROM trace_grace
    WHERE status = 'scored'
),
counted AS (
    SELECT
        recipe, date, app, generator, source,
        1 AS support,
        list_contains(cited, source)::INTEGER AS tp,
        0 AS fp,
        (outcome <> 'hit')::INTEGER AS fn
    FROM right_source
    UNION ALL
    SELECT recipe, date, app, generator, source, 0, 0, 1, 0
    FROM cited_source
    WHERE NOT list_contains(gold, source)
),
source AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        source,
        sum(support)::BIGINT AS support,
        sum(tp)::BIGINT AS tp,
        sum(fp)::BIGINT AS fp,
        sum(fn)::BIGINT AS fn
    FROM counted
    GROUP BY recipe, date, app, generator, source
)
SELECT
    recipe,
    date,
    app,
    generator,
    source,
    support,
    tp AS true_positives,
    fp AS false_positives,
    fn AS false_negatives,
    tp / nullif(tp + fp, 0) AS precision,
    tp / nullif(tp + fn, 0) AS recall,
    2 * tp / nullif(2 * tp + fp + fn, 0) AS f1
FROM source
ORDER BY app, generator, source
