-- grain: one value of one slice of one night of one app and generator
-- inputs: shown (see shown_slices.sql) of one recipe and day
-- The sums behind the intervals of the mean scores of slices (docs/methods.md#noise-and-confidence). Per question, in any order:
-- number of traces with the score (n), and its sum (total).
SELECT
    date,
    app,
    generator,
    name AS number,
    list(scored::UINTEGER) AS n,
    list(score_total::DOUBLE) AS total,
    list(1::UINTEGER) AS questions
FROM shown
WHERE scored > 0
GROUP BY date, app, generator, name
ORDER BY app, generator, number
