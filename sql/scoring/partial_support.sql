-- grain: one claim that some chunks support in part, each by itself, according to the judge that decided
-- inputs: claim_results, pairs, verdict (see part_verdicts.sql), for one part
-- A chunk counts where a pair shows it alone, or where the judge named it alone.
-- Pairs meet their claims first: a verdict joined to a claim by the stage alone would be every verdict with every claim.
WITH decided AS MATERIALIZED (
    SELECT pairs.claim_id, pairs.stage, pairs.request_key, pairs.evidence
    FROM pairs
    JOIN claim_results ON claim_results.claim_id = pairs.claim_id AND claim_results.stage = pairs.stage
    WHERE pairs.pair_kind IS DISTINCT FROM 'found_true' -- which shows claims, and no chunks
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
