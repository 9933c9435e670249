-- grain: one joint look at a claim that no single chunk supports (METHODS section 3: a claim may need several chunks)
-- inputs: pairs (single looks of one part), verdict (see part_verdicts.sql)
-- parameters: $joint_chunks, how many chunks are shown together
-- The best window of each chunk enters; a claim with a look that could not be judged waits for the repair.
WITH look AS (
    SELECT
        pairs.claim_id,
        pairs.trace_id,
        pairs.evidence[1] AS evidence,
        pairs.cited,
        verdict.label,
        coalesce(verdict.p_supported, 0) AS p_supported
    FROM pairs
    LEFT JOIN verdict USING (request_key)
    WHERE pairs.look = 'single'
),
open_claim AS (
    SELECT claim_id
    FROM look
    GROUP BY claim_id
    HAVING count(*) = count(label) AND NOT bool_or(label = 'supported')
),
chunk AS (
    SELECT
        claim_id,
        trace_id,
        cited,
        p_supported,
        evidence
    FROM look
    SEMI JOIN open_claim USING (claim_id)
    QUALIFY row_number() OVER (
        PARTITION BY claim_id, evidence.chunk_id ORDER BY p_supported DESC, evidence.start
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
)
-- Where the best chunks are the cited ones, one look serves both.
SELECT
    claim_id,
    trace_id,
    min(look) AS look,
    evidence
FROM joint
WHERE len(evidence) > 1
GROUP BY claim_id, trace_id, evidence
ORDER BY claim_id, look
