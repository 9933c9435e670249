-- grain: one grade of one night of one app and generator; per question, how many traces have it and their sum
-- inputs: trace_scores of one recipe and day, grades of its grader and extractor
-- What the intervals of `nightly_grades` are made from (METHODS section 11), as `question_sums` is for the others.
WITH question AS (
    SELECT
        t.date,
        t.app,
        t.generator,
        t.question_id,
        g.grade,
        count(g.value) AS n,
        sum(g.value) AS total
    FROM trace_scores AS t
    INNER JOIN grades AS g USING (date, trace_id)
    WHERE g.value IS NOT NULL
    GROUP BY t.date, t.app, t.generator, t.question_id, g.grade
)
SELECT
    date,
    app,
    generator,
    grade AS number,
    list(n::DOUBLE ORDER BY question_id) AS n,
    list(round(total, 9)::DOUBLE ORDER BY question_id) AS total
FROM question
GROUP BY date, app, generator, grade
ORDER BY app, generator, number
