-- grain: one right source and one cited source, in one night of one app and generator under one recipe
-- inputs: trace_grace of one recipe and day
-- A hit counts for each right source that it cites; its other citations are no confusion. A miss counts for each pair
-- of a right source and a cited source, which is null if it cites none
-- (docs/methods.md#grace-citations-as-classification).
WITH scored AS (
    SELECT
        recipe, date, app, generator,
        unnest(gold) AS gold,
        CASE
            WHEN outcome = 'hit' THEN list_intersect(gold, cited)
            WHEN len(cited) = 0 THEN [NULL]
            ELSE cited
        END AS cited,
        outcome = 'hit' AS hit
    FROM trace_grace
    WHERE status = 'scored'
),
pair AS (
    SELECT recipe, date, app, generator, gold, unnest(cited) AS cited, hit
    FROM scored
)
SELECT recipe, date, app, generator, gold, cited, count(*) AS n
FROM pair
WHERE NOT hit OR gold = cited
GROUP BY ALL
ORDER BY app, generator, gold, cited
