-- grain: one claim that single chunks partially support, according to the deciding judge
-- inputs: claim_results, pairs, verdict (see part_verdicts.sql), for one part
-- A chunk counts if it is the only one in a pair, or the only one that the judge named.
-- Pairs are joined to claims first: joining verdicts to claims only by stage would be a cross join.
WITH decided AS MATERIALIZED (
    SELECT pairs.claim_id, pairs.stage, pairs.request_key, pairs.evidence
    FROM pairs
    JOIN claim_results ON claim_results.claim_id = pairs.claim_id AND claim_results.stage = pairs.stage
    WHERE pairs.pair_kind IS DISTINCT FROM 'found_true' -- its evidence is claims, not chunks
),
pair AS (
    SELECT
        claim_id,
        list_distinct(list_transform(
            CASE
                WHEN len(coalesce(verdict.passages, [])) = 0 THEN decided.evidence
                ELSE list_select(decided.evidence, verdict.passages)
            END,
            lambda e: e.chunk_id
        )) AS chunk_ids
    FROM decided
    JOIN verdict USING (stage, request_key)
    WHERE verdict.label = 'partially_supported'
)
SELECT claim_id, list(DISTINCT chunk_ids[1] ORDER BY chunk_ids[1]) AS chunk_ids
FROM pair
WHERE len(chunk_ids) = 1
GROUP BY claim_id
