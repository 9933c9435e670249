-- grain: one grade of one answer that differs between A and B, largest distance first
-- inputs: ratings_a, ratings_b (rows of night_grades.sql, suite_grades.sql or people_grades.sql)
-- parameters: $most
-- Distances are relative to the range of the grade. A grade that applies for only one rater has the largest distance.
SELECT
    a.date,
    a.item,
    a.app,
    a.grade,
    a.outcome AS outcome_a,
    b.outcome AS outcome_b,
    a.value AS value_a,
    b.value AS value_b
FROM ratings_a AS a
JOIN ratings_b AS b ON a.date IS NOT DISTINCT FROM b.date AND a.item = b.item AND a.grade = b.grade
WHERE
    a.outcome IN ('scored', 'na')
    AND b.outcome IN ('scored', 'na')
    AND (a.outcome <> b.outcome OR a.value <> b.value)
ORDER BY
    CASE
        WHEN a.outcome <> b.outcome THEN 1
        ELSE abs(a.value - b.value) / if(a.grade IN ('answer_relevancy', 'completeness'), 4, 1)
    END DESC,
    a.date,
    a.item,
    a.grade
LIMIT $most
