-- grain: one number of one night of one app and generator, where it has one
-- inputs: nightly_groundedness, nightly_utilization, nightly_relevance, nightly_citations of one recipe, of the nights
--   that are compared
-- What alerts watch (docs/methods.md#noise-and-confidence).
WITH number AS (
    SELECT date, app, generator, 'groundedness' AS number, n_scored AS n,
        groundedness_mean AS mean, groundedness_low AS low, groundedness_high AS high
    FROM nightly_groundedness
    UNION ALL
    SELECT date, app, generator, 'faithfulness', n_scored, faithfulness_mean, faithfulness_low, faithfulness_high
    FROM nightly_groundedness
    UNION ALL
    SELECT date, app, generator, 'utilization', n_scored, utilization_mean, utilization_low, utilization_high
    FROM nightly_utilization
    UNION ALL
    SELECT date, app, generator, CASE kind WHEN 'answerability' THEN kind ELSE kind || '_relevance' END, n_scored,
        relevance_mean, relevance_low, relevance_high
    FROM nightly_relevance
    UNION ALL
    SELECT date, app, generator, 'citation_groundedness', n_scored,
        citation_groundedness_mean, citation_groundedness_low, citation_groundedness_high
    FROM nightly_citations
)
SELECT date, app, generator, number, n, mean, low, high
FROM number
WHERE mean IS NOT NULL
ORDER BY app, generator, number, date
