-- grain: one source that is right for or cited in an annotated trace of one night, app and generator under one recipe
-- inputs: grace_sums (see grace_sums.sql), intervals (number, low and high by date, app, generator and source)
-- A number with denominator 0 (such as the precision of a source that no answer cites) is null
-- (docs/methods.md#grace-citations-as-classification).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
WITH source AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        source,
        sum(support)::BIGINT AS support,
        sum(true_positives)::BIGINT AS true_positives,
        sum(false_positives)::BIGINT AS false_positives,
        sum(false_negatives)::BIGINT AS false_negatives
    FROM grace_sums
    WHERE source IS NOT NULL
    GROUP BY recipe, date, app, generator, source
)
SELECT
    source.*,
    true_positives / nullif(true_positives + false_positives, 0) AS precision,
    ends['precision'].low AS precision_low,
    ends['precision'].high AS precision_high,
    true_positives / nullif(true_positives + false_negatives, 0) AS recall,
    ends['recall'].low AS recall_low,
    ends['recall'].high AS recall_high,
    2 * true_positives / nullif(2 * true_positives + false_positives + false_negatives, 0) AS f1,
    ends['f1'].low AS f1_low,
    ends['f1'].high AS f1_high
FROM source
LEFT JOIN ends_of('intervals') USING (date, app, generator, source)
ORDER BY app, generator, source
