-- grain: one combination of the outcomes under A and B, over the claims of one app and question
-- inputs: ratings_a, ratings_b (rows of judge_labels.sql or people_labels.sql)
SELECT
    a.app,
    a.question,
    a.drawn AND b.drawn AS drawn,
    a.outcome AS outcome_a,
    b.outcome AS outcome_b,
    count(*) AS n
FROM ratings_a AS a
JOIN ratings_b AS b USING (date, claim_id)
GROUP BY ALL
ORDER BY ALL
