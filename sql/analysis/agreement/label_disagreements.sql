-- grain: one claim that A and B label differently, the worst first
-- inputs: said_a, said_b (rows of judge_labels.sql or people_labels.sql)
-- parameters: $labels (in order: supported, in part, not, denied), $most
-- Of labels as far apart the surest comes first. People's labels, and those of a judge that tells no confidence, are as
-- sure as the other side's.
SELECT
    a.date,
    a.claim_id,
    a.trace_id,
    a.app,
    a.outcome AS label_a,
    b.outcome AS label_b,
    a.confidence AS confidence_a,
    b.confidence AS confidence_b
FROM said_a AS a
JOIN said_b AS b USING (date, claim_id)
WHERE a.outcome <> b.outcome AND list_contains($labels, a.outcome) AND list_contains($labels, b.outcome)
ORDER BY
    abs(list_position($labels, a.outcome) - list_position($labels, b.outcome)) DESC,
    least(coalesce(a.confidence, b.confidence), coalesce(b.confidence, a.confidence)) DESC NULLS LAST,
    a.date,
    a.claim_id
LIMIT $most
