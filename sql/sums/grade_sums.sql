-- grain: one grade of one night of one app and generator
-- inputs: trace_scores of one recipe and day, grades of its grader and extractor
-- The sums behind the intervals of `nightly_grades` (docs/methods.md#noise-and-confidence). Per question, in any
-- order: number of traces with the grade (n), and sum of the grade (total). `questions` counts the questions with these
-- sums.
WITH question AS (
    SELECT
        t.date,
        t.app,
        t.generator,
        g.grade,
        count(g.value) AS n,
        sum(g.value) AS total
    FROM trace_scores AS t
    INNER JOIN grades AS g USING (date, trace_id)
    WHERE g.value IS NOT NULL
    GROUP BY t.date, t.app, t.generator, coalesce(t.question_id, t.trace_id), g.grade
)
SELECT
    date,
    app,
    generator,
    grade AS number,
    list(n::UINTEGER) AS n,
    list(total::DOUBLE) AS total,
    list(1::UINTEGER) AS questions
FROM question
GROUP BY date, app, generator, grade
ORDER BY app, generator, number
