-- grain: one uncited claim of one part for the second pass, with the claims of its answer that it is checked against
-- inputs: claims, claim_results (after the first pass)
-- docs/methods.md#citation-groundedness-two-passes. A claim waits while a verdict of the first pass on its answer is
-- missing, since that verdict may add evidence. If the first pass found nothing true, there is no evidence to show.
WITH segment AS (
    SELECT
        claims.trace_id,
        claims.claim_id,
        claims.ordinal,
        len(claims.cited_chunk_ids) > 0 AS cited,
        len(claims.dangling_citations) > 0 AS dangling,
        claim_results.status,
        claim_results.label
    FROM claims
    JOIN claim_results USING (claim_id)
),
ground AS (
    SELECT trace_id, list(claim_id ORDER BY ordinal) FILTER (cited AND label = 'supported') AS found_true
    FROM segment
    GROUP BY trace_id
    HAVING bool_or(cited AND label = 'supported') AND NOT bool_or(cited AND status = 'unjudged')
)
SELECT segment.claim_id, segment.trace_id, ground.found_true
FROM segment
JOIN ground USING (trace_id)
WHERE NOT segment.cited AND NOT segment.dangling
ORDER BY segment.trace_id, segment.ordinal
