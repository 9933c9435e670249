-- grain: one trace of some applications under one recipe, with the scores and claims to write back
-- inputs: traces, trace_scores, claim_results, claims, for one part
-- parameters: $apps, $texts (whether to include the texts of claims)
WITH claim AS (
    SELECT
        r.trace_id, r.label, r.misused, r.deciding_chunk_ids,
        {'claim_id': r.claim_id, 'text': CASE WHEN $texts THEN coalesce(c.text, '') ELSE '' END} AS claim,
        coalesce(c.ordinal, 0) AS ordinal
    FROM claim_results AS r
    LEFT JOIN claims AS c USING (claim_id)
    WHERE r.status = 'judged'
),
found AS (
    SELECT
        trace_id,
        coalesce(list(claim ORDER BY ordinal) FILTER (label = 'partially_supported'), []) AS partly,
        coalesce(list(claim ORDER BY ordinal) FILTER (label = 'unsupported'), []) AS unsupported,
        coalesce(list(claim ORDER BY ordinal) FILTER (label = 'contradicted'), []) AS contradicted,
        coalesce(list(claim ORDER BY ordinal) FILTER (misused), []) AS misused,
        list({'claim_id': claim.claim_id, 'label': label, 'chunk_ids': deciding_chunk_ids} ORDER BY ordinal) AS decided
    FROM claim
    GROUP BY trace_id
)
SELECT
    t.trace_id, t.timestamp, t.environment, list_transform(t.chunks, lambda k: k.chunk_id) AS chunk_ids,
    s.judge_version, s.groundedness_status, s.groundedness_score, s.faithfulness, s.claims_judged, s.claims_supported,
    s.claims_unjudged, s.claims_abstained, s.claims_misused, s.citation_status, s.citation_groundedness,
    s.segments_judged, s.segments_true, s.chunks_retrieved, s.chunks_used, s.chunks_unused, s.utilization,
    s.chunks_relevant, s.context_relevance_status, s.context_relevance, s.answer_relevance_status, s.answer_relevance,
    coalesce(found.partly, []) AS partly, coalesce(found.unsupported, []) AS unsupported,
    coalesce(found.contradicted, []) AS contradicted, coalesce(found.misused, []) AS misused,
    coalesce(found.decided, []) AS decided
FROM trace_scores AS s
INNER JOIN traces AS t ON t.trace_id = s.trace_id
LEFT JOIN found ON found.trace_id = s.trace_id
WHERE s.app IN (SELECT unnest($apps))
ORDER BY t.timestamp, t.trace_id
