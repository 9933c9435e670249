-- grain: one pair of one judge at a claim with all cited chunks except one (docs/methods.md#labels: citation precision)
-- inputs: claims, pairs (of one judge, with its joint pairs), verdict (see part_verdicts.sql), for one part
-- If three or more cited chunks entail a claim only together, these pairs show which of the chunks are necessary. With
-- two cited chunks, the single pairs already show it.
WITH seen AS (
    SELECT
        pairs.claim_id,
        pairs.trace_id,
        pairs.evidence,
        list_distinct(list_transform(pairs.evidence, lambda e: e.chunk_id)) AS chunk_ids,
        claims.cited_chunk_ids,
        verdict.label
    FROM pairs
    JOIN claims USING (claim_id)
    JOIN verdict USING (request_key)
    WHERE pairs.cited AND len(claims.cited_chunk_ids) > 2 AND pairs.pair_kind IN ('single', 'joint', 'joint_cited')
),
entailed AS (
    SELECT
        claim_id,
        any_value(trace_id) AS trace_id,
        any_value(cited_chunk_ids) AS cited_chunk_ids,
        any_value(evidence) FILTER (label = 'supported' AND list_has_all(chunk_ids, cited_chunk_ids)) AS evidence
    FROM seen
    GROUP BY claim_id
    HAVING NOT coalesce(bool_or(label = 'supported' AND len(chunk_ids) = 1), FALSE) AND evidence IS NOT NULL
),
without AS (
    SELECT claim_id, trace_id, evidence AS whole, unnest(cited_chunk_ids) AS left_out
    FROM entailed
)
SELECT
    claim_id,
    trace_id,
    'cited_without' AS pair_kind,
    list_filter(whole, lambda e: e.chunk_id <> left_out) AS evidence,
    len(evidence)::INTEGER AS least
FROM without
ORDER BY claim_id, left_out
