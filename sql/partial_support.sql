-- grain: one claim that some chunks support in part, each by itself, as the judge that decided saw it
-- inputs: claim_results, pairs, verdict (see part_verdicts.sql), for one part
-- A chunk counts by a look at it alone, or by a look in which the judge named it alone.
WITH look AS (
    SELECT
        claim_id,
        list_distinct(list_transform(
            CASE
                WHEN len(coalesce(verdict.passages, [])) = 0 THEN pairs.evidence
                ELSE list_select(pairs.evidence, verdict.passages)
            END,
            lambda e: e.chunk_id
        )) AS chunk_ids
    FROM pairs
    JOIN verdict USING (stage, request_key)
    JOIN claim_results USING (claim_id)
    WHERE pairs.stage = claim_results.stage AND verdict.label = 'partially_supported'
        AND pairs.look IS DISTINCT FROM 'found_true' -- which shows claims, and no chunks
)
SELECT claim_id, list(DISTINCT chunk_ids[1] ORDER BY chunk_ids[1]) AS chunk_ids
FROM look
WHERE len(chunk_ids) = 1
GROUP BY claim_id
