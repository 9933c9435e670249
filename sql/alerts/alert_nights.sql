-- grain: one number of one night of one app and generator, if it has a mean
-- inputs: nightly_groundedness, nightly_utilization, nightly_relevance, nightly_citations, nightly_grades of one recipe,
--   of the nights to compare
-- The numbers that alerts watch (docs/methods.md#noise-and-confidence). N/A does not count as a trace with the grade.
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
    UNION ALL
    SELECT date, app, generator, 'grade_' || grade, n_scored, grade_mean, grade_low, grade_high
    FROM nightly_grades
)
SELECT date, app, generator, number, n, mean, low, high
FROM number
WHERE mean IS NOT NULL
ORDER BY app, generator, number, date
