-- grain: one failure pattern of one night of one app and generator
-- inputs: trace_scores of one recipe and day, shown_patterns (see shown_patterns.sql) of the same
-- parameters: $patterns (the names that the recipe looks for)
-- What the intervals of `nightly_patterns` are made from (METHODS section 11): of each question how many claims were
-- judged (n) and how many of these show the pattern (total), in any order. `questions` says how many questions are so.
WITH question AS (
    SELECT date, app, generator, coalesce(question_id, trace_id) AS question, sum(claims_judged) AS n
    FROM trace_scores
    GROUP BY ALL
    HAVING n > 0
),
showing AS (
    SELECT date, app, generator, pattern, question.n, shown_patterns.n AS total, count(*) AS questions
    FROM shown_patterns
    JOIN question USING (date, app, generator, question)
    WHERE total > 0
    GROUP BY ALL
),
looked_for AS (
    SELECT date, app, generator, unnest($patterns::VARCHAR[]) AS pattern, n, count(*) AS questions
    FROM question
    GROUP BY ALL
),
alike AS (
    FROM showing
    UNION ALL BY NAME
    SELECT looked_for.* REPLACE (looked_for.questions - coalesce(of_these.questions, 0) AS questions), 0 AS total
    FROM looked_for
    LEFT JOIN (
        SELECT date, app, generator, pattern, n, sum(questions) AS questions FROM showing GROUP BY ALL
    ) AS of_these USING (date, app, generator, pattern, n)
)
SELECT
    date,
    app,
    generator,
    pattern AS number,
    list(n::UINTEGER) AS n,
    list(total::DOUBLE) AS total,
    list(questions::UINTEGER) AS questions
FROM alike
WHERE questions > 0 AND list_contains($patterns::VARCHAR[], pattern)
GROUP BY date, app, generator, pattern
ORDER BY app, generator, number
