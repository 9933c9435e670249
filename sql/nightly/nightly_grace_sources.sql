-- grain: one source that is right of, or cited in, an annotated trace of one night, app and generator under one recipe
-- inputs: grace_sums (see grace_sums.sql), intervals (number, low and high by date, app, generator and source)
-- METHODS section 8. A number that nothing stands behind (the precision of what nobody cites) is null.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH source AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        source,
        sum(support)::BIGINT AS support,
        sum(true_positives)::BIGINT AS tp,
        sum(false_positives)::BIGINT AS fp,
        sum(false_negatives)::BIGINT AS fn
    FROM grace_sums
    WHERE source IS NOT NULL
    GROUP BY recipe, date, app, generator, source
),
ends AS (
    SELECT date, app, generator, source, map(list(number), list({'low': low, 'high': high})) AS of
    FROM intervals
    GROUP BY date, app, generator, source
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
    ends.of['precision'].low AS precision_low,
    ends.of['precision'].high AS precision_high,
    tp / nullif(tp + fn, 0) AS recall,
    ends.of['recall'].low AS recall_low,
    ends.of['recall'].high AS recall_high,
    2 * tp / nullif(2 * tp + fp + fn, 0) AS f1,
    ends.of['f1'].low AS f1_low,
    ends.of['f1'].high AS f1_high
FROM source
LEFT JOIN ends USING (date, app, generator, source)
ORDER BY app, generator, source
