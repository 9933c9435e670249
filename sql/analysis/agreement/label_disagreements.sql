-- grain: one claim that A and B label differently, largest distance first
-- inputs: ratings_a, ratings_b (rows of judge_labels.sql or people_labels.sql)
-- parameters: $labels (in order: supported, in part, not, denied), $most
-- Claims with equal distance are ordered by confidence. If one rater gives no confidence (people never do), the
-- confidence of the other is used.
SELECT
    a.date,
    a.claim_id,
    a.trace_id,
    a.app,
    a.outcome AS label_a,
    b.outcome AS label_b,
    a.confidence AS confidence_a,
    b.confidence AS confidence_b
FROM ratings_a AS a
JOIN ratings_b AS b USING (date, claim_id)
WHERE a.outcome <> b.outcome AND list_contains($labels, a.outcome) AND list_contains($labels, b.outcome)
ORDER BY
    abs(list_position($labels, a.outcome) - list_position($labels, b.outcome)) DESC,
    least(coalesce(a.confidence, b.confidence), coalesce(b.confidence, a.confidence)) DESC NULLS LAST,
    a.date,
    a.claim_id
LIMIT $most
