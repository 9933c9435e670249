-- grain: one joint pair of one judge at a claim (docs/methods.md#labels: a claim may need several chunks)
-- inputs: claims, pairs (single pairs of one judge), verdict (see part_verdicts.sql), for one part
-- Evidence is ranked. The pair shows the first windows: at least `least`, and as many as fit into the pairing's limit
-- of words (tasks/judging/pairs.py). A claim with an unjudged pair waits until the pair is judged, unless another pair
-- supports the claim.
WITH single_pair AS (
    SELECT
        pairs.claim_id,
        pairs.trace_id,
        pairs.request_key,
        pairs.evidence,
        pairs.cited,
        bool_or(pairs.pair_kind = 'pack') OVER (PARTITION BY pairs.claim_id) AS packed,
        coalesce(claims.cited_chunk_ids, []) AS cited_chunk_ids,
        verdict.label,
        verdict.p_supported,
        -- The deciding windows: the only one, or those that the judge named.
        CASE
            WHEN len(pairs.evidence) = 1 THEN pairs.evidence
            ELSE list_select(pairs.evidence, coalesce(verdict.passages, []))
        END AS named
    FROM pairs
    LEFT JOIN claims USING (claim_id)
    LEFT JOIN verdict USING (request_key)
    WHERE pairs.pair_kind IN ('single', 'pack')
),
unsupported_claim AS (
    SELECT claim_id
    FROM single_pair
    GROUP BY claim_id
    HAVING count(*) = count(label) AND NOT bool_or(label = 'supported')
),
-- No cited chunk supports the claim by itself. Other chunks are ignored.
unsupported_citation AS (
    SELECT claim_id
    FROM single_pair
    WHERE NOT packed AND cited
    GROUP BY claim_id
    HAVING count(*) = count(label) AND NOT bool_or(label = 'supported')
),
-- Windows of single pairs.
seen AS (
    SELECT
        claim_id,
        trace_id,
        cited,
        coalesce(p_supported, 0) AS p_supported,
        evidence[1] AS evidence,
        -- The best window of each cited chunk comes before the second window of any chunk.
        row_number() OVER (
            PARTITION BY claim_id, evidence[1].chunk_id ORDER BY coalesce(p_supported, 0) DESC, evidence[1].start
        ) AS place
    FROM single_pair
    WHERE NOT packed
),
joint AS (
    SELECT
        claim_id,
        trace_id,
        'joint' AS pair_kind,
        2 AS least,
        list(evidence ORDER BY p_supported DESC, evidence.chunk_id, evidence.start) AS evidence
    FROM seen
    SEMI JOIN unsupported_claim USING (claim_id)
    GROUP BY claim_id, trace_id
    UNION ALL
    SELECT
        claim_id,
        trace_id,
        'joint_cited' AS pair_kind,
        greatest(2, count(*) FILTER (place = 1)) AS least,
        list(evidence ORDER BY place > 1, p_supported DESC, evidence.chunk_id, evidence.start) AS evidence
    FROM seen
    SEMI JOIN unsupported_citation USING (claim_id)
    WHERE cited
    GROUP BY claim_id, trace_id
),
-- Claims with several packs: passages that support a part of the claim are joined across packs.
fragment AS (
    SELECT
        claim_id,
        trace_id,
        request_key,
        p_supported,
        unnest(named) AS evidence,
        generate_subscripts(named, 1) AS place
    FROM single_pair
    SEMI JOIN unsupported_claim USING (claim_id)
    WHERE packed AND label = 'partially_supported'
),
stitched AS (
    SELECT
        claim_id,
        trace_id,
        list(evidence ORDER BY place, p_supported DESC NULLS LAST, evidence.chunk_id, evidence.start) AS evidence
    FROM fragment
    GROUP BY claim_id, trace_id
    HAVING count(DISTINCT request_key) > 1
),
-- Before a citation counts as misused or as not entailing the claim, the judge must see the claim with only the cited
-- chunks. This pair is not needed if all supporting passages of a pack are cited, if a cited chunk is among those that
-- partially support the claim, or if no chunk supports it.
unsettled AS (
    SELECT claim_id
    FROM (
        SELECT
            *,
            list_transform(named, lambda e: e.chunk_id) AS named_ids,
            bool_or(label = 'supported') OVER (PARTITION BY claim_id) AS supported
        FROM single_pair
        WHERE packed
    )
    GROUP BY claim_id
    HAVING
        (count(*) = count(label) OR bool_or(supported))
        AND bool_or(label NOT IN ('unsupported', 'contradicted'))
        AND NOT coalesce(bool_or(
            CASE
                WHEN supported
                    THEN label = 'supported' AND (cited OR (len(named) > 0 AND list_has_all(cited_chunk_ids, named_ids)))
                ELSE label = 'partially_supported' AND (cited OR list_has_any(named_ids, cited_chunk_ids))
            END
        ), FALSE)
),
window_of_pack AS (
    SELECT
        claim_id,
        trace_id,
        cited_chunk_ids,
        unnest(evidence) AS evidence
    FROM single_pair
    SEMI JOIN unsettled USING (claim_id)
),
planned AS (
    SELECT claim_id, trace_id, pair_kind, least, evidence
    FROM joint
    WHERE len(evidence) > 1
    UNION ALL
    SELECT claim_id, trace_id, 'joint', 2, evidence
    FROM stitched
    WHERE len(evidence) > 1
    UNION ALL
    SELECT claim_id, trace_id, 'joint_cited', count(*), list(evidence ORDER BY evidence.chunk_id, evidence.start)
    FROM window_of_pack
    WHERE list_contains(cited_chunk_ids, evidence.chunk_id)
    GROUP BY claim_id, trace_id
)
SELECT claim_id, trace_id, pair_kind, least::INTEGER AS least, evidence
FROM planned
ORDER BY claim_id, pair_kind
