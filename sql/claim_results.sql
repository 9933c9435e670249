-- grain: one claim under one recipe
-- inputs: claims, pairs, verdict (see part_verdicts.sql), for one part
-- parameters: $recipe, $judge_version
-- METHODS section 3. Over all looks at a claim: supported if any look entails it; else unjudged if any look has no
-- label, since that one might have; else contradicted, then partially supported, if any look says so; else abstained
-- if the judge could not tell in any look; else unsupported.
WITH look AS (
    SELECT
        pairs.claim_id,
        pairs.look,
        pairs.cited,
        list_transform(pairs.evidence, lambda e: e.chunk_id) AS chunk_ids,
        verdict.label,
        verdict.p_supported,
        verdict.p_contradicted
    FROM pairs
    LEFT JOIN verdict USING (request_key)
),
claim AS (
    SELECT
        claim_id,
        count(*) AS looks,
        count(*) - count(label) AS looks_unjudged,
        max(p_supported) AS p_supported,
        max(p_contradicted) AS p_contradicted,
        CASE
            WHEN bool_or(label = 'supported') THEN 'supported'
            WHEN count(label) < count(*) THEN 'unjudged'
            WHEN bool_or(label = 'contradicted') THEN 'contradicted'
            WHEN bool_or(label = 'partially_supported') THEN 'partially_supported'
            WHEN bool_or(label = 'abstained') THEN 'abstained'
            ELSE 'unsupported'
        END AS outcome,
        bool_or(cited AND label IN ('supported', 'partially_supported')) AS cited_supports,
        bool_or(cited AND coalesce(label, 'abstained') = 'abstained') AS cited_open
    FROM look
    GROUP BY claim_id
),
-- One chunk's verdict is that of its best window, by the same precedence.
chunk AS (
    SELECT
        claim_id,
        chunk_ids[1] AS chunk_id,
        CASE
            WHEN bool_or(label = 'supported') THEN 'supported'
            WHEN count(label) < count(*) THEN NULL
            WHEN bool_or(label = 'contradicted') THEN 'contradicted'
            WHEN bool_or(label = 'partially_supported') THEN 'partially_supported'
            WHEN bool_or(label = 'abstained') THEN 'abstained'
            ELSE 'unsupported'
        END AS label,
        max(p_supported) AS p_supported
    FROM look
    WHERE look = 'single' AND cited
    GROUP BY ALL
),
cited AS (
    SELECT
        claim_id,
        list({'chunk_id': chunk_id, 'label': label, 'p_supported': p_supported} ORDER BY chunk_id) AS cited_support
    FROM chunk
    GROUP BY claim_id
),
-- The look that decides: of those with the claim's label, single before joint, cited before not, then the surest.
-- For a claim without support, the look that came closest.
deciding AS (
    SELECT
        look.claim_id,
        look.chunk_ids
    FROM look
    JOIN claim USING (claim_id)
    WHERE claim.outcome IN ('unsupported', 'abstained', 'unjudged') OR look.label = claim.outcome
    QUALIFY row_number() OVER (
        PARTITION BY look.claim_id
        ORDER BY
            look.look = 'single' DESC,
            look.cited AND claim.outcome IN ('supported', 'partially_supported', 'contradicted') DESC,
            CASE WHEN claim.outcome = 'contradicted' THEN look.p_contradicted ELSE look.p_supported END DESC NULLS LAST,
            look.chunk_ids
    ) = 1
),
result AS (
    SELECT
        claims.*,
        coalesce(claim.outcome, 'na') AS outcome,
        claim.p_supported,
        claim.p_contradicted,
        coalesce(claim.looks, 0) AS looks,
        coalesce(claim.looks_unjudged, 0) AS looks_unjudged,
        CASE
            WHEN claim.outcome IS NULL OR len(claims.cited_chunk_ids) = 0 OR claim.cited_supports THEN FALSE
            WHEN claim.cited_open THEN NULL
            ELSE TRUE
        END AS misused,
        coalesce(deciding.chunk_ids, []) AS chunk_ids,
        coalesce(cited.cited_support, []) AS cited_support
    FROM claims
    LEFT JOIN claim USING (claim_id)
    LEFT JOIN deciding USING (claim_id)
    LEFT JOIN cited USING (claim_id)
)
SELECT
    $recipe AS recipe,
    date,
    claim_id,
    trace_id,
    $judge_version AS judge_version,
    CASE WHEN outcome IN ('na', 'unjudged', 'abstained') THEN outcome ELSE 'judged' END AS status,
    CASE WHEN outcome NOT IN ('na', 'unjudged', 'abstained') THEN outcome END AS label,
    misused,
    chunk_ids[1] AS deciding_chunk_id,
    chunk_ids AS deciding_chunk_ids,
    cited_support,
    CASE outcome
        WHEN 'supported' THEN p_supported
        WHEN 'contradicted' THEN p_contradicted
        WHEN 'partially_supported' THEN greatest(0, 1 - p_supported - coalesce(p_contradicted, 0))
        WHEN 'unsupported' THEN greatest(0, 1 - p_supported - coalesce(p_contradicted, 0))
    END AS confidence,
    p_supported,
    p_contradicted,
    looks,
    looks_unjudged,
    list_filter(
        [
            CASE WHEN misused AND outcome = 'supported' THEN 'citation_drift' END,
            CASE WHEN len(dangling_citations) > 0 THEN 'dangling_citation' END
        ],
        lambda pattern: pattern IS NOT NULL
    ) AS patterns,
    coalesce(misused, TRUE) OR outcome IN ('unjudged', 'abstained') AS needs_review
FROM result
ORDER BY trace_id, ordinal
