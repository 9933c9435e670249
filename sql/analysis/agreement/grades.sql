-- grain: one grade of the answers of one app and question, by outcome under A and under B
-- inputs: ratings_a, ratings_b (rows of night_grades.sql, suite_grades.sql or people_grades.sql)
SELECT
    a.grade,
    a.app,
    a.question,
    a.drawn AND b.drawn AS drawn,
    a.outcome AS outcome_a,
    b.outcome AS outcome_b,
    a.value AS value_a,
    b.value AS value_b,
    count(*) AS n
FROM ratings_a AS a
JOIN ratings_b AS b ON a.date IS NOT DISTINCT FROM b.date AND a.item = b.item AND a.grade = b.grade
GROUP BY ALL
ORDER BY ALL
