-- grain: one outcome under A and one under B of the claims of one app and question
-- inputs: said_a, said_b (rows of judge_labels.sql or people_labels.sql)
SELECT
    a.app,
    a.question,
    a.drawn AND b.drawn AS drawn,
    a.outcome AS outcome_a,
    b.outcome AS outcome_b,
    count(*) AS n
FROM said_a AS a
JOIN said_b AS b USING (date, claim_id)
GROUP BY ALL
ORDER BY ALL
