-- grain: one number of one app and generator on the latest night, from the results that count
-- inputs: current_alerts, current_citations, current_grades, current_groundedness, current_relevance, current_utilization, judges
-- `main` marks the main number of the recipe's method. Its traces and alerts represent the app and generator.
WITH numbers AS (
    SELECT
        date, app, generator, judge_version, n_scored, n_na, n_unjudged, n_abstained,
        'groundedness_score' AS name, true AS main,
        groundedness_mean AS mean, groundedness_low AS low, groundedness_high AS high
    FROM current_groundedness
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version, 'faithfulness_ratio' AS name,
        faithfulness_mean AS mean, faithfulness_low AS low, faithfulness_high AS high
    FROM current_groundedness
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version, 'misused_ratio' AS name,
        misused_share AS mean, misused_share_low AS low, misused_share_high AS high
    FROM current_groundedness
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version, 'utilization_ratio' AS name,
        utilization_mean AS mean, utilization_low AS low, utilization_high AS high
    FROM current_utilization
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version,
        CASE WHEN kind = 'answerability' THEN kind ELSE kind || '_relevance' END AS name,
        relevance_mean AS mean, relevance_low AS low, relevance_high AS high
    FROM current_relevance
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version, n_scored, n_na, n_unjudged, n_abstained,
        'citation_groundedness_ratio' AS name, true AS main,
        citation_groundedness_mean AS mean, citation_groundedness_low AS low, citation_groundedness_high AS high
    FROM current_citations
    UNION ALL BY NAME
    SELECT
        date, app, generator, judge_version, 'grade_' || grade AS name,
        grade_mean AS mean, grade_low AS low, grade_high AS high
    FROM current_grades
),
fired AS (
    SELECT date, app, generator, count(*) AS n FROM current_alerts GROUP BY ALL
)
SELECT
    numbers.* REPLACE (coalesce(main, false) AS main),
    judges.name AS judge,
    coalesce(fired.n, 0) AS alerts
FROM numbers
LEFT JOIN judges USING (judge_version)
LEFT JOIN fired USING (date, app, generator)
WHERE date = (SELECT max(date) FROM numbers)
ORDER BY numbers.name, app, generator
