-- grain: one combination of the labels of people, A and B, over the claims of one question that all three labeled
-- inputs: ratings_a, ratings_b (rows of judge_labels.sql), ratings_people (rows of people_labels.sql)
-- parameters: $labels
SELECT
    p.question,
    p.drawn,
    a.outcome AS label_a,
    b.outcome AS label_b,
    p.outcome AS label_people,
    count(*) AS n
FROM ratings_people AS p
JOIN ratings_a AS a USING (date, claim_id)
JOIN ratings_b AS b USING (date, claim_id)
WHERE
    list_contains($labels, p.outcome)
    AND list_contains($labels, a.outcome)
    AND list_contains($labels, b.outcome)
GROUP BY ALL
ORDER BY ALL
