-- Grain: one claim of the given traces, with its result; also other segments, which have no result.
-- Inputs: claims, claim_results, claim_patterns. Parameters: $recipe, $night, $extractor_version, $trace_ids.
WITH pattern AS (
    SELECT claim_id, list({'pattern': pattern, 'answer_spans': answer_spans, 'chunk_spans': chunk_spans} ORDER BY pattern) AS evidence
    FROM claim_patterns
    WHERE recipe = $recipe AND date = $night AND trace_id IN (SELECT unnest($trace_ids))
    GROUP BY claim_id
)
SELECT
    c.trace_id, c.claim_id, c.ordinal, c.kind, c.language, c.text, c.context, c.span_start, c.span_end, c.cited_chunk_ids,
    c.dangling_citations, r.status, r.label, r.abstained_for, r.misused, r.to_check, coalesce(r.stage, 1) AS stage,
    r.deciding_chunk_id, r.deciding_chunk_ids, r.cited_support, r.confidence, r.patterns,
    coalesce(pattern.evidence, []) AS evidence, r.needs_review
FROM claims AS c
LEFT JOIN claim_results AS r ON r.claim_id = c.claim_id AND r.date = c.date AND r.recipe = $recipe
LEFT JOIN pattern ON pattern.claim_id = c.claim_id
WHERE
    c.extractor_version = $extractor_version AND c.date = $night
    AND c.trace_id IN (SELECT unnest($trace_ids))
    AND (c.kind <> 'claim' OR r.claim_id IS NOT NULL)
ORDER BY c.trace_id, c.ordinal
