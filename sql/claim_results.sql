-- grain: one claim under one recipe
-- inputs: claims, pairs, verdict (see part_verdicts.sql; `stage` tells whose), for one part
-- parameters: $recipe, $judge_version
-- METHODS section 3. Over all looks of one judge at a claim: supported if any look entails it; else unjudged if any
-- look has no label, since that one might have; else contradicted, then partially supported, if any look says so; else
-- abstained if the judge could not tell in any look; else unsupported. Of several judges, the last that gave a label
-- counts.
WITH seen AS (
    SELECT
        pairs.claim_id,
        pairs.stage,
        pairs.look,
        pairs.cited,
        -- Of this judge's looks at the claim some show many chunks at once.
        bool_or(pairs.look = 'pack') OVER (PARTITION BY pairs.claim_id, pairs.stage) AS packed,
        claims.cited_chunk_ids,
        list_transform(pairs.evidence, lambda e: e.chunk_id) AS shown,
        list_transform(list_select(pairs.evidence, coalesce(verdict.passages, [])), lambda e: e.chunk_id) AS named,
        verdict.label,
        verdict.p_supported,
        verdict.p_contradicted
    FROM pairs
    JOIN claims USING (claim_id)
    LEFT JOIN verdict USING (stage, request_key)
),
look AS (
    SELECT
        claim_id,
        stage,
        look,
        cited,
        packed,
        -- A pack cites what it names: each of these chunks decides by itself.
        cited OR (packed AND list_has_any(named, cited_chunk_ids)) AS cites,
        list_filter(shown, lambda c, i: list_position(shown, c) = i) AS chunk_ids,
        -- What decides: the chunks that the judge names, cited ones first, or else all that it saw.
        CASE
            WHEN len(named) = 0 THEN list_filter(shown, lambda c, i: list_position(shown, c) = i)
            ELSE list_concat(
                list_filter(named, lambda c, i: list_position(named, c) = i AND list_contains(cited_chunk_ids, c)),
                list_filter(named, lambda c, i: list_position(named, c) = i AND NOT list_contains(cited_chunk_ids, c))
            )
        END AS deciding_ids,
        label,
        p_supported,
        p_contradicted
    FROM seen
),
judged AS (
    SELECT
        claim_id,
        stage,
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
        bool_or(cites AND label IN ('supported', 'partially_supported')) AS cited_supports,
        -- Whether the cited chunks support the claim could not be told. After packs, a look at them alone tells, if
        -- there was need for one.
        CASE
            WHEN NOT bool_or(packed) THEN bool_or(cited AND coalesce(label, 'abstained') = 'abstained')
            WHEN bool_or(look = 'joint_cited')
                THEN bool_or(look = 'joint_cited' AND coalesce(label, 'abstained') = 'abstained')
            ELSE bool_or(look IN ('single', 'pack') AND coalesce(label, '') NOT IN ('unsupported', 'contradicted'))
        END AS cited_open
    FROM look
    GROUP BY claim_id, stage
),
claim AS (
    SELECT
        *,
        max(stage) OVER (PARTITION BY claim_id) AS stage_asked
    FROM judged
    QUALIFY row_number() OVER (
        PARTITION BY claim_id
        ORDER BY CASE outcome WHEN 'unjudged' THEN 2 WHEN 'abstained' THEN 1 ELSE 0 END, stage DESC
    ) = 1
),
-- One chunk's verdict is that of its best window, by the same precedence.
chunk AS (
    SELECT
        claim_id,
        stage,
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
    WHERE len(chunk_ids) = 1 AND cited
    GROUP BY ALL
),
cited AS (
    SELECT
        claim_id,
        stage,
        list({'chunk_id': chunk_id, 'label': label, 'p_supported': p_supported} ORDER BY chunk_id) AS cited_support
    FROM chunk
    GROUP BY claim_id, stage
),
-- The look that decides: of those with the claim's label, single before joint, cited before not, then the surest.
-- For a claim without support, the look that came closest.
deciding AS (
    SELECT
        look.claim_id,
        look.deciding_ids
    FROM look
    JOIN claim USING (claim_id, stage)
    WHERE claim.outcome IN ('unsupported', 'abstained', 'unjudged') OR look.label = claim.outcome
    QUALIFY row_number() OVER (
        PARTITION BY look.claim_id
        ORDER BY
            look.packed OR look.look = 'single' DESC,
            look.cites AND claim.outcome IN ('supported', 'partially_supported', 'contradicted') DESC,
            look.look IN ('single', 'pack') DESC,
            CASE WHEN claim.outcome = 'contradicted' THEN look.p_contradicted ELSE look.p_supported END DESC NULLS LAST,
            look.chunk_ids
    ) = 1
),
result AS (
    SELECT
        claims.*,
        coalesce(claim.outcome, 'na') AS outcome,
        claim.stage,
        claim.stage_asked,
        claim.p_supported,
        claim.p_contradicted,
        coalesce(claim.looks, 0) AS looks,
        coalesce(claim.looks_unjudged, 0) AS looks_unjudged,
        CASE
            WHEN claim.outcome IS NULL OR len(claims.cited_chunk_ids) = 0 OR claim.cited_supports THEN FALSE
            WHEN claim.cited_open THEN NULL
            ELSE TRUE
        END AS misused,
        coalesce(deciding.deciding_ids, []) AS chunk_ids,
        coalesce(cited.cited_support, []) AS cited_support
    FROM claims
    LEFT JOIN claim USING (claim_id)
    LEFT JOIN deciding USING (claim_id)
    LEFT JOIN cited ON cited.claim_id = claims.claim_id AND cited.stage = claim.stage
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
    stage,
    stage_asked,
    chunk_ids[1] AS deciding_chunk_id,
    chunk_ids AS deciding_chunk_ids,
    cited_support,
    CASE
        WHEN outcome = 'supported' THEN p_supported
        WHEN outcome = 'contradicted' THEN p_contradicted
        WHEN outcome IN ('partially_supported', 'unsupported') AND p_supported IS NOT NULL
            THEN greatest(0, 1 - p_supported - coalesce(p_contradicted, 0))
    END AS confidence,
    p_supported,
    p_contradicted,
    looks,
    looks_unjudged,
    []::VARCHAR[] AS patterns, -- found last of all, since texts are read for some (tasks/stages/patterns.py)
    coalesce(misused, TRUE)
        OR outcome IN ('unjudged', 'abstained')
        OR coalesce(stage < stage_asked, FALSE) AS needs_review
FROM result
ORDER BY trace_id, ordinal
