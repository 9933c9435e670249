-- Grain: one number of one night, app, generator and judge version; the night and the 89 days before it.
-- Inputs: nightly_groundedness, nightly_utilization, nightly_relevance, nightly_citations. Parameters: $recipe, $night.
WITH numbers AS (
    SELECT
        recipe, date, app, generator, judge_version, 'groundedness' AS metric, n, n_scored, n_na, n_unjudged,
        n_abstained, groundedness_mean AS mean, groundedness_low AS low, groundedness_high AS high
    FROM nightly_groundedness
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'faithfulness', n, n_scored, n_na, n_unjudged,
        n_abstained, faithfulness_mean, faithfulness_low, faithfulness_high
    FROM nightly_groundedness
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'utilization', n, n_scored, n_na, n_unjudged,
        n_abstained, utilization_mean, utilization_low, utilization_high
    FROM nightly_utilization
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, kind || '_relevance', n, n_scored, n_na, n_unjudged,
        n_abstained, relevance_mean, relevance_low, relevance_high
    FROM nightly_relevance
    UNION ALL
    SELECT
        recipe, date, app, generator, judge_version, 'citation_groundedness', n, n_scored, n_na, n_unjudged,
        n_abstained, citation_groundedness_mean, citation_groundedness_low, citation_groundedness_high
    FROM nightly_citations
)
SELECT date, app, generator, judge_version, metric, n, n_scored, n_na, n_unjudged, n_abstained, mean, low, high
FROM numbers
WHERE recipe = $recipe AND date BETWEEN CAST($night AS DATE) - 89 AND CAST($night AS DATE)
ORDER BY app, generator, judge_version, metric, date
