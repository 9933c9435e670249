-- grain: one second look of one judge at a claim (METHODS section 3: a claim may need several chunks)
-- inputs: claims, pairs (first looks of one judge), verdict (see part_verdicts.sql), for one part
-- parameters: $joint_chunks, how many chunks are shown together
-- A claim with a look that could not be judged waits for the repair, unless another look supports it.
WITH first_look AS (
    SELECT
        pairs.claim_id,
        pairs.trace_id,
        pairs.request_key,
        pairs.evidence,
        pairs.cited,
        bool_or(pairs.look = 'pack') OVER (PARTITION BY pairs.claim_id) AS packed,
        coalesce(claims.cited_chunk_ids, []) AS cited_chunk_ids,
        verdict.label,
        verdict.p_supported,
        -- The windows that decide by themselves, as far as the judge names them.
        CASE
            WHEN len(pairs.evidence) = 1 THEN pairs.evidence
            ELSE list_select(pairs.evidence, coalesce(verdict.passages, []))
        END AS named
    FROM pairs
    LEFT JOIN claims USING (claim_id)
    LEFT JOIN verdict USING (request_key)
    WHERE pairs.look IN ('single', 'pack')
),
unsupported_claim AS (
    SELECT claim_id
    FROM first_look
    GROUP BY claim_id
    HAVING count(*) = count(label) AND NOT bool_or(label = 'supported')
),
-- Chunks that were shown one by one: the best window of each enters.
chunk AS (
    SELECT
        claim_id,
        trace_id,
        cited,
        coalesce(p_supported, 0) AS p_supported,
        evidence[1] AS evidence
    FROM first_look
    SEMI JOIN unsupported_claim USING (claim_id)
    WHERE NOT packed
    QUALIFY row_number() OVER (
        PARTITION BY claim_id, evidence[1].chunk_id ORDER BY coalesce(p_supported, 0) DESC, evidence[1].start
    ) = 1
),
joint AS (
    SELECT
        claim_id,
        trace_id,
        'joint' AS look,
        list(evidence ORDER BY p_supported DESC, evidence.chunk_id)[:$joint_chunks] AS evidence
    FROM chunk
    GROUP BY claim_id, trace_id
    UNION ALL
    SELECT
        claim_id,
        trace_id,
        'joint_cited' AS look,
        list(evidence ORDER BY p_supported DESC, evidence.chunk_id)[:$joint_chunks] AS evidence
    FROM chunk
    WHERE cited
    GROUP BY claim_id, trace_id
),
-- Chunks that were shown in several packs: what supports a part of the claim in one is joined with that of others.
fragment AS (
    SELECT
        claim_id,
        trace_id,
        request_key,
        p_supported,
        unnest(named) AS evidence,
        generate_subscripts(named, 1) AS place
    FROM first_look
    SEMI JOIN unsupported_claim USING (claim_id)
    WHERE packed AND label = 'partially_supported'
),
stitched AS (
    SELECT
        claim_id,
        trace_id,
        list(
            evidence ORDER BY place, p_supported DESC NULLS LAST, evidence.chunk_id, evidence.start
        )[:$joint_chunks] AS evidence
    FROM fragment
    GROUP BY claim_id, trace_id
    HAVING count(DISTINCT request_key) > 1
),
-- Before a claim is said to misuse its citation, the judge sees it with the cited chunks alone. That is settled where
-- a cited chunk is among those that support the claim, or where no chunk does.
unsettled AS (
    SELECT claim_id
    FROM first_look
    WHERE packed
    GROUP BY claim_id
    HAVING
        (count(*) = count(label) OR bool_or(label = 'supported'))
        AND bool_or(label NOT IN ('unsupported', 'contradicted'))
        AND NOT bool_or(
            coalesce(label, '') IN ('supported', 'partially_supported')
            AND (cited OR list_has_any(list_transform(named, lambda e: e.chunk_id), cited_chunk_ids))
        )
),
window_of_pack AS (
    SELECT
        claim_id,
        trace_id,
        cited_chunk_ids,
        unnest(evidence) AS evidence
    FROM first_look
    SEMI JOIN unsettled USING (claim_id)
),
asked AS (
    -- Where the best chunks are the cited ones, one look serves both.
    SELECT claim_id, trace_id, min(look) AS look, evidence
    FROM joint
    WHERE len(evidence) > 1
    GROUP BY claim_id, trace_id, evidence
    UNION ALL
    SELECT claim_id, trace_id, 'joint', evidence
    FROM stitched
    WHERE len(evidence) > 1
    UNION ALL
    SELECT claim_id, trace_id, 'joint_cited', list(evidence ORDER BY evidence.chunk_id, evidence.start)
    FROM window_of_pack
    WHERE list_contains(cited_chunk_ids, evidence.chunk_id)
    GROUP BY claim_id, trace_id
)
SELECT claim_id, trace_id, look, evidence
FROM asked
ORDER BY claim_id, look
