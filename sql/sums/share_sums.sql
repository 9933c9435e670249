-- grain: one failure pattern, or one value of a slice, of one night of one app and generator
-- inputs: trace_scores of one recipe and day, shown (see shown_patterns.sql, shown_slices.sql) of the same
-- parameters: $names (the recipe's patterns, or the names in `shown`), $judged (whether shares are of judged claims or
--   of all claims)
-- The sums behind the intervals of these shares (docs/methods.md#noise-and-confidence). Per question, in any order:
-- number of claims (n), and number of claims that show it (total). `questions` counts the questions with these sums.
WITH question AS (
    SELECT
        date,
        app,
        generator,
        coalesce(question_id, trace_id) AS question,
        sum(CASE WHEN $judged THEN claims_judged ELSE claims_total END) AS n
    FROM trace_scores
    GROUP BY ALL
    HAVING n > 0
),
showing AS (
    SELECT date, app, generator, shown.name, question.n, shown.n AS total, count(*) AS questions
    FROM shown
    JOIN question USING (date, app, generator, question)
    WHERE total > 0
    GROUP BY ALL
),
looked_for AS (
    SELECT *, unnest($names::VARCHAR[]) AS name
    FROM (SELECT date, app, generator, n, count(*) AS questions FROM question GROUP BY ALL)
),
alike AS (
    FROM showing
    UNION ALL BY NAME
    SELECT looked_for.* REPLACE (looked_for.questions - coalesce(of_these.questions, 0) AS questions), 0 AS total
    FROM looked_for
    LEFT JOIN (
        SELECT date, app, generator, name, n, sum(questions) AS questions FROM showing GROUP BY ALL
    ) AS of_these USING (date, app, generator, name, n)
)
SELECT
    date,
    app,
    generator,
    name AS number,
    list(n::UINTEGER) AS n,
    list(total::DOUBLE) AS total,
    list(questions::UINTEGER) AS questions
FROM alike
WHERE questions > 0 AND list_contains($names::VARCHAR[], name)
GROUP BY date, app, generator, name
ORDER BY app, generator, number
