-- grain: one claim under one recipe
-- inputs: claims, pairs, verdict (see part_verdicts.sql; `stage` is the judge's number), for one part
-- parameters: $recipe, $judge_version, $dangling_as_misuse, $readers (stage and languages of each judge; null for all)
-- docs/methods.md#labels. The pairs of one judge at a claim are combined (macro `combined`). Of several judges, the
-- last one that gave a label counts. A claim in a language that its judge does not read has no pairs and is
-- `abstained`.
WITH seen AS (
    SELECT
        pairs.claim_id,
        pairs.stage,
        pairs.pair_kind,
        pairs.cited,
        -- Whether the judge has packs at this claim: pairs that show many chunks at once.
        bool_or(pairs.pair_kind = 'pack') OVER (PARTITION BY pairs.claim_id, pairs.stage) AS packed,
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
pair AS (
    SELECT
        claim_id,
        stage,
        pair_kind,
        cited,
        packed,
        cited_chunk_ids,
        named,
        -- A pack counts as citing if the judge named a cited chunk in it, since each named chunk decides by itself.
        cited OR (packed AND list_has_any(named, cited_chunk_ids)) AS cites,
        list_filter(shown, lambda c, i: list_position(shown, c) = i) AS chunk_ids,
        CASE WHEN len(list_distinct(shown)) = 1 AND cited THEN list_distinct(shown) ELSE [] END AS shown_alone,
        -- Deciding chunks: those that the judge named, cited ones first, or else all chunks of the pair.
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
        count(*) AS n_pairs,
        count(*) - count(label) AS n_pairs_unjudged,
        max(p_supported) AS p_supported,
        max(p_contradicted) AS p_contradicted,
        combined(label) AS outcome,
        bool_or(cites AND label IN ('supported', 'partially_supported')) AS cited_supports,
        -- Whether it is unknown if the cited chunks support the claim. With packs, a pair with only the cited chunks
        -- decides if there is one.
        CASE
            WHEN NOT bool_or(packed) THEN bool_or(cited AND coalesce(label, 'abstained') = 'abstained')
            WHEN bool_or(pair_kind = 'joint_cited')
                THEN bool_or(pair_kind = 'joint_cited' AND coalesce(label, 'abstained') = 'abstained')
            ELSE bool_or(pair_kind IN ('single', 'pack') AND coalesce(label, '') NOT IN ('unsupported', 'contradicted'))
        END AS cited_open
    FROM pair
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
-- The verdict on a chunk is that of its best window, by the same precedence.
chunk AS (
    SELECT
        claim_id,
        stage,
        chunk_ids[1] AS chunk_id,
        nullif(combined(label), 'unjudged') AS label,
        max(p_supported) AS p_supported
    FROM pair
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
-- Citation recall (ALCE, Gao et al. 2023): whether all cited chunks together entail the claim.
cited_together AS (
    SELECT
        pair.claim_id,
        pair.stage,
        CASE
            WHEN bool_or(label = 'supported' AND entails) THEN 1
            WHEN bool_or(coalesce(label, 'abstained') = 'abstained' AND entails) THEN NULL
            ELSE 0
        END AS recall
    FROM (
        SELECT
            *,
            -- All chunks of the pair are cited or, in a pack, all chunks that the judge named.
            cited OR (packed AND len(named) > 0 AND list_has_all(cited_chunk_ids, named)) AS entails
        FROM pair
    ) AS pair
    GROUP BY pair.claim_id, pair.stage
),
-- Citation precision: the share of cited chunks that entail the claim alone or without which the others don't entail
-- it.
citation AS (
    SELECT claim.claim_id, claim.stage, claims.cited_chunk_ids, unnest(claims.cited_chunk_ids) AS chunk_id
    FROM claim
    JOIN claims USING (claim_id)
),
precise AS (
    SELECT
        citation.claim_id,
        citation.stage,
        citation.chunk_id,
        any_value(cited_together.recall) AS recall,
        CASE
            WHEN any_value(cited_together.recall) IS NULL THEN NULL
            WHEN any_value(cited_together.recall) = 0 THEN FALSE
            WHEN bool_or(pair.label = 'supported' AND list_contains(pair.shown_alone, citation.chunk_id)) THEN TRUE
            WHEN bool_or(pair.label = 'supported' AND pair.packed AND list_contains(pair.named, citation.chunk_id))
                THEN TRUE
            -- Other cited chunks entail the claim without this one.
            WHEN bool_or(pair.label = 'supported' AND pair.cited AND NOT list_contains(pair.chunk_ids, citation.chunk_id))
                THEN FALSE
            WHEN bool_or(pair.packed) THEN FALSE
            -- All other cited chunks together don't entail the claim.
            WHEN bool_or(
                pair.label IS NOT NULL AND pair.label <> 'abstained' AND pair.cited
                AND list_has_all(pair.chunk_ids, list_filter(citation.cited_chunk_ids, lambda c: c <> citation.chunk_id))
                AND NOT list_contains(pair.chunk_ids, citation.chunk_id)
            ) THEN TRUE
        END AS precise
    FROM citation
    JOIN pair ON pair.claim_id = citation.claim_id AND pair.stage = citation.stage
    LEFT JOIN cited_together ON cited_together.claim_id = citation.claim_id AND cited_together.stage = citation.stage
    GROUP BY citation.claim_id, citation.stage, citation.chunk_id
),
citations AS (
    SELECT claim_id, any_value(recall) AS recall, count(precise) AS counted, count(*) FILTER (precise) AS precise
    FROM precise
    GROUP BY claim_id
),
-- The deciding pair: of those with the claim's label, single before joint, cited before uncited, then by probability.
-- For a claim without support, the pair with the highest probability of support.
deciding AS (
    SELECT
        pair.claim_id,
        pair.deciding_ids
    FROM pair
    JOIN claim USING (claim_id, stage)
    WHERE claim.outcome IN ('unsupported', 'abstained', 'unjudged') OR pair.label = claim.outcome
    QUALIFY row_number() OVER (
        PARTITION BY pair.claim_id
        ORDER BY
            pair.packed OR pair.pair_kind = 'single' DESC,
            pair.cites AND claim.outcome IN ('supported', 'partially_supported', 'contradicted') DESC,
            pair.pair_kind IN ('single', 'pack') DESC,
            CASE WHEN claim.outcome = 'contradicted' THEN pair.p_contradicted ELSE pair.p_supported END DESC NULLS LAST,
            pair.chunk_ids
    ) = 1
),
-- Judges at the start of the cascade that don't read the claim's language.
unread AS (
    SELECT claim_id, max(stage) AS stage
    FROM (
        SELECT
            claim_id,
            unnest(list_filter(stages, lambda s, i: s = i)) AS stage
        FROM (
            SELECT
                claim_id,
                list_transform(
                    list_filter(
                        $readers::STRUCT(stage INTEGER, languages VARCHAR[])[],
                        lambda r: r.languages IS NOT NULL AND language IS NOT NULL
                            AND NOT list_contains(r.languages, language)
                    ),
                    lambda r: r.stage
                ) AS stages
            FROM claims
        )
    )
    GROUP BY claim_id
),
result AS (
    SELECT
        claims.*,
        coalesce(claim.outcome, if(unread.stage IS NULL, 'na', 'abstained')) AS outcome,
        coalesce(claim.stage, unread.stage) AS stage,
        greatest(claim.stage_asked, unread.stage) AS stage_asked,
        claim.outcome IS NULL AND unread.stage IS NOT NULL AS is_unread,
        claim.p_supported,
        claim.p_contradicted,
        coalesce(claim.n_pairs, 0) AS n_pairs,
        coalesce(claim.n_pairs_unjudged, 0) AS n_pairs_unjudged,
        CASE
            WHEN claim.outcome IS NULL AND unread.stage IS NOT NULL AND len(claims.cited_chunk_ids) > 0 THEN NULL
            WHEN claim.outcome IS NULL THEN FALSE
            WHEN len(claims.cited_chunk_ids) = 0 THEN $dangling_as_misuse AND len(claims.dangling_citations) > 0
            WHEN claim.cited_supports THEN FALSE
            WHEN claim.cited_open THEN NULL
            ELSE TRUE
        END AS misused,
        -- A claim without references, or with only dangling ones, has recall 0. A dangling reference entails nothing.
        CASE
            WHEN claim.outcome IS NULL THEN NULL
            WHEN len(claims.cited_chunk_ids) = 0 THEN 0
            ELSE citations.recall
        END AS citation_recall,
        CASE WHEN claim.outcome IS NOT NULL
            THEN coalesce(citations.counted, 0) + len(claims.dangling_citations) ELSE 0
        END AS citations_counted,
        coalesce(citations.precise, 0) AS citations_precise,
        coalesce(deciding.deciding_ids, []) AS chunk_ids,
        coalesce(cited.cited_support, []) AS cited_support
    FROM claims
    LEFT JOIN claim USING (claim_id)
    LEFT JOIN unread USING (claim_id)
    LEFT JOIN deciding USING (claim_id)
    LEFT JOIN citations USING (claim_id)
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
    language,
    CASE WHEN outcome = 'abstained' THEN if(is_unread, 'language', 'judge') END AS abstained_for,
    misused,
    citation_recall::DOUBLE AS citation_recall,
    citations_counted::INTEGER AS citations_counted,
    citations_precise::INTEGER AS citations_precise,
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
    n_pairs,
    n_pairs_unjudged,
    -- Added later, since some patterns need texts (tasks/scoring/patterns.py)
    []::VARCHAR[] AS patterns,
    FALSE AS to_check,
    coalesce(misused, TRUE)
        OR outcome IN ('unjudged', 'abstained')
        OR coalesce(stage < stage_asked, FALSE) AS needs_review
FROM result
ORDER BY trace_id, ordinal
