-- Grain: one of the given traces, with its scores.
-- Inputs: traces, trace_scores, trace_grace, feedback. Parameters: $recipe, $night, $trace_ids.
SELECT
    t.trace_id, t.timestamp, t.app, t.environment, t.session, t.question, t.answer, t.chunks, t.generator,
    t.prompt_version, t.retriever, t.latency_ms, t.tokens_in, t.tokens_out, t.cost, t.tags, t.reference_answer,
    t.gold_chunk_ids, t.repeat, f.score AS user_score, f.comment AS user_comment,
    s.groundedness_status, s.groundedness_score, s.faithfulness, s.claims_total, s.claims_judged,
    s.claims_supported, s.claims_partial, s.claims_unsupported, s.claims_contradicted, s.claims_misused,
    s.claims_unjudged, s.claims_abstained, s.claims_to_check, s.groundedness_na, s.citation_recall, s.citation_precision,
    s.citations_dangling, s.chunks_retrieved, s.chunks_used,
    s.chunks_unused, s.utilization, s.chunks_relevant, s.context_relevance_status, s.context_relevance,
    s.answer_relevance_status, s.answer_relevance, s.diagnosis, s.citation_status, s.citation_groundedness,
    s.segments_total, s.segments_judged, s.segments_true, s.segments_cited, s.segments_cited_judged,
    s.segments_cited_true, s.segments_dangling, s.answerability_status, s.answerability, s.weakest_support, s.waterfall, s.waterfall_uncertain,
    g.gold AS right_sources, g.gold_chunk_ids AS right_chunk_ids, g.cited AS cited_sources, g.outcome AS grace_outcome
FROM traces AS t
INNER JOIN trace_scores AS s ON s.trace_id = t.trace_id AND s.date = t.date AND s.recipe = $recipe
LEFT JOIN trace_grace AS g ON g.trace_id = t.trace_id AND g.date = t.date AND g.recipe = $recipe
LEFT JOIN feedback AS f ON f.trace_id = t.trace_id AND f.date = t.date
WHERE t.date = $night AND t.trace_id IN (SELECT unnest($trace_ids))
QUALIFY row_number() OVER (PARTITION BY t.trace_id ORDER BY f.read_at DESC) = 1
