-- grain: one trace under one recipe
-- inputs: traces, claims (including other segments of the answers), claim_results, relevance, for one part
-- parameters: $recipe, $method, $judge_version, $salt, $misuse_penalty, $partial_credit, $t_context, $t_groundedness,
--   $t_answer, $w_retrieval, $w_answerability, $w_faithfulness, $w_answer, $partial_passes
-- docs/methods.md#scores-of-one-trace, The triad, The waterfall. Claims that are N/A, unjudged or abstained are counted
-- but enter no mean.
WITH claim AS (
    SELECT
        trace_id,
        count(*) AS total,
        count(label) AS judged,
        count(*) FILTER (label = 'supported') AS supported,
        count(*) FILTER (label = 'partially_supported') AS partial,
        count(*) FILTER (label = 'unsupported') AS unsupported,
        count(*) FILTER (label = 'contradicted') AS contradicted,
        count(*) FILTER (label IS NOT NULL AND misused) AS misused,
        count(*) FILTER (status = 'unjudged') AS unjudged,
        count(*) FILTER (status = 'abstained') AS abstained,
        count(*) FILTER (abstained_for = 'language') AS unread,
        count(*) FILTER (to_check) AS to_check,
        -- Claims that stop an answer, independent of probabilities
        -- (docs/methods.md#the-waterfall-what-is-safe-to-send).
        count(*) FILTER (
            label IN ('unsupported', 'contradicted') OR to_check OR (label IS NOT NULL AND misused)
            OR (label = 'partially_supported' AND NOT $partial_passes)
        ) AS stopping,
        avg(citation_recall) FILTER (label IS NOT NULL) AS citation_recall,
        sum(citations_precise) FILTER (label IS NOT NULL)
        / nullif(sum(citations_counted) FILTER (label IS NOT NULL), 0) AS citation_precision,
        count(*) FILTER ($method <> 'citations' AND stage_asked > 1) AS escalated,
        count(*) FILTER (stage = 1) AS cited,
        count(label) FILTER (stage = 1) AS cited_judged,
        count(*) FILTER (stage = 1 AND label = 'supported') AS cited_true,
        list_distinct(flatten(list(deciding_chunk_ids) FILTER (label = 'supported'))) AS used,
        -- Smallest probability of support of a claim. Null if a claim stops the answer, or if it is unknown whether one
        -- does. For judges without probabilities, the label gives the value.
        CASE
            WHEN stopping = 0
                AND NOT bool_or(status IN ('unjudged', 'abstained') OR (label IS NOT NULL AND misused IS NULL))
                THEN min(
                    CASE label
                        WHEN 'supported' THEN coalesce(p_supported, 1)
                        WHEN 'partially_supported' THEN coalesce(p_supported, 0.5)
                    END
                )
        END AS weakest_support
    FROM claim_results
    GROUP BY trace_id
),
cut AS (
    SELECT
        trace_id,
        sum(len(dangling_citations))::INTEGER AS dangling,
        count(*) FILTER (kind = 'claim' AND len(dangling_citations) > 0 AND len(cited_chunk_ids) = 0)
            AS segments_dangling,
        count(*) FILTER (kind = 'refusal') AS refusals,
        bool_and(kind = 'reasoning') AS only_reasoning
    FROM claims
    GROUP BY trace_id
),
relevant AS (
    SELECT
        trace_id,
        max(score) FILTER (kind = 'answer') AS answer_relevance,
        max(score) FILTER (kind = 'context') AS best_chunk,
        count(score) FILTER (kind = 'context') AS chunks_scored,
        count(*) FILTER (kind = 'context' AND score >= $t_context) AS chunks_relevant,
        max(score) FILTER (kind = 'answerability') AS answerability
    FROM relevance
    GROUP BY trace_id
),
trace AS (
    SELECT
        traces.*,
        list_transform(traces.chunks, lambda c: c.chunk_id) AS chunk_ids,
        coalesce(claim.total, 0) AS total,
        coalesce(claim.judged, 0) AS judged,
        coalesce(claim.supported, 0) AS supported,
        coalesce(claim.partial, 0) AS partial,
        coalesce(claim.unsupported, 0) AS unsupported,
        coalesce(claim.contradicted, 0) AS contradicted,
        coalesce(claim.misused, 0) AS misused,
        coalesce(claim.unjudged, 0) AS unjudged,
        coalesce(claim.abstained, 0) AS abstained,
        coalesce(claim.escalated, 0) AS escalated,
        coalesce(claim.unread, 0) AS unread,
        coalesce(claim.to_check, 0) AS to_check,
        coalesce(claim.stopping, 0) AS stopping,
        coalesce(cut.dangling, 0) AS dangling,
        coalesce(cut.refusals, 0) AS refusals,
        cut.segments_dangling,
        claim.citation_recall,
        claim.citation_precision,
        coalesce(cut.only_reasoning, FALSE)
        OR coalesce(text_redacted_at IS NULL AND NOT regexp_matches(answer, '[^\s\p{Z}]'), FALSE) AS is_empty,
        -- The answer only states that there is no answer.
        NOT is_empty AND cut.refusals > 0 AND claim.total IS NULL AS declines,
        coalesce(claim.used, []) AS used,
        claim.weakest_support,
        CASE WHEN NOT (is_empty OR coalesce(declines, FALSE)) THEN relevant.answer_relevance END AS answer_relevance,
        relevant.answerability,
        -- A chunk without a score might be the best one.
        CASE WHEN relevant.chunks_scored = len(traces.chunks) THEN relevant.best_chunk END AS context_relevance,
        relevant.chunks_relevant,
        CASE
            WHEN $method = 'citations' OR len(traces.chunks) = 0 THEN 'na'
            -- Without its text, it is unknown whether the answer has claims.
            WHEN claim.total IS NULL AND traces.text_redacted_at IS NOT NULL THEN 'unjudged'
            WHEN claim.total IS NULL THEN 'na'
            WHEN claim.judged > 0 THEN 'scored'
            WHEN claim.unjudged > 0 THEN 'unjudged'
            WHEN claim.abstained > 0 THEN 'abstained'
            ELSE 'na'
        END AS groundedness_status,
        CASE
            WHEN len(traces.chunks) = 0 THEN 'na'
            WHEN context_relevance IS NULL THEN 'unjudged'
            ELSE 'scored'
        END AS context_relevance_status,
        CASE
            WHEN len(traces.chunks) = 0 THEN 'na'
            WHEN relevant.answerability IS NULL THEN 'unjudged'
            ELSE 'scored'
        END AS answerability_status,
        CASE
            WHEN is_empty OR declines THEN 'na'
            WHEN relevant.answer_relevance IS NULL THEN 'unjudged'
            ELSE 'scored'
        END AS answer_relevance_status,
        -- Only for method `citations`, where claims are segments and stages are passes.
        CASE
            WHEN $method <> 'citations' THEN NULL
            WHEN claim.judged > 0 THEN 'scored'
            WHEN claim.unjudged > 0 THEN 'unjudged'
            WHEN claim.abstained > 0 THEN 'abstained'
            WHEN claim.total IS NULL AND traces.text_redacted_at IS NOT NULL AND len(traces.chunks) > 0 THEN 'unjudged'
            ELSE 'na'
        END AS citation_status,
        citation_status <> 'na' AND claim.total IS NOT NULL AS in_passes,
        claim.cited,
        claim.cited_judged,
        claim.cited_true
    FROM traces
    LEFT JOIN claim USING (trace_id)
    LEFT JOIN cut USING (trace_id)
    LEFT JOIN relevant USING (trace_id)
),
score AS (
    SELECT
        *,
        groundedness_status = 'scored' AS grounded,
        CASE
            WHEN groundedness_status = 'scored'
                THEN greatest(0, least(100,
                    100.0 * (supported + $partial_credit * partial - $misuse_penalty * misused) / judged
                ))
        END AS groundedness_score
    FROM trace
)
SELECT
    $recipe AS recipe,
    date,
    trace_id,
    timestamp,
    app,
    environment,
    generator,
    prompt_version,
    $judge_version AS judge_version,
    CASE WHEN text_redacted_at IS NULL THEN md5($salt || normalized(question)) END AS question_id,
    CASE WHEN text_redacted_at IS NULL THEN md5($salt || session) END AS session_id,
    groundedness_status,
    -- Why groundedness is N/A: the first reason that applies.
    CASE
        WHEN groundedness_status <> 'na' THEN NULL
        WHEN $method = 'citations' THEN 'method'
        WHEN is_empty THEN 'no_answer'
        WHEN len(chunks) = 0 THEN 'no_context'
        WHEN total > 0 THEN 'not_shown' -- no claim was checked against evidence
        WHEN declines THEN 'refusal'
        ELSE 'no_claims'
    END AS groundedness_na,
    groundedness_score,
    CASE WHEN grounded THEN supported / judged END AS faithfulness,
    total AS claims_total,
    judged AS claims_judged,
    supported AS claims_supported,
    partial AS claims_partial,
    unsupported AS claims_unsupported,
    contradicted AS claims_contradicted,
    misused AS claims_misused,
    unjudged AS claims_unjudged,
    abstained AS claims_abstained,
    escalated AS claims_escalated,
    unread AS claims_unread,
    to_check AS claims_to_check,
    stopping AS claims_stopping,
    refusals,
    citation_recall,
    citation_precision,
    dangling AS citations_dangling,
    len(chunks) AS chunks_retrieved,
    CASE WHEN grounded THEN len(used) END AS chunks_used,
    CASE WHEN grounded THEN list_filter(chunk_ids, lambda c: NOT list_contains(used, c)) END AS chunks_unused,
    CASE WHEN grounded THEN len(used) / len(chunks) END AS utilization,
    CASE WHEN context_relevance_status = 'scored' THEN chunks_relevant END AS chunks_relevant,
    context_relevance_status,
    context_relevance,
    answer_relevance_status,
    answer_relevance,
    answerability_status,
    answerability,
    -- The triad, in order: a question matters only if the questions before it were answered with yes.
    CASE
        WHEN context_relevance_status <> 'scored' THEN NULL
        WHEN context_relevance < $t_context THEN 'retrieval'
        WHEN groundedness_na = 'refusal' THEN 'declined'
        WHEN groundedness_status <> 'scored' THEN NULL
        WHEN groundedness_score < $t_groundedness THEN 'generator'
        WHEN answer_relevance_status <> 'scored' THEN NULL
        WHEN answer_relevance < $t_answer THEN 'prompt'
        ELSE 'healthy'
    END AS diagnosis,
    citation_status,
    CASE WHEN citation_status = 'scored' THEN supported / judged END AS citation_groundedness,
    CASE WHEN in_passes THEN total END AS segments_total,
    CASE WHEN in_passes THEN judged END AS segments_judged,
    CASE WHEN in_passes THEN supported END AS segments_true,
    CASE WHEN in_passes THEN cited END AS segments_cited,
    CASE WHEN in_passes THEN cited_judged END AS segments_cited_judged,
    CASE WHEN in_passes THEN cited_true END AS segments_cited_true,
    CASE WHEN in_passes THEN segments_dangling END AS segments_dangling,
    weakest_support,
    -- The waterfall: the first stage that the trace does not pass. A missing signal does not pass its stage.
    CASE
        WHEN coalesce(context_relevance < $w_retrieval, TRUE) THEN 'retrieval'
        -- The answer only states that there is no answer.
        WHEN declines THEN 'answerability'
        WHEN coalesce(answerability < $w_answerability, TRUE) THEN 'answerability'
        WHEN stopping > 0 OR coalesce(weakest_support < $w_faithfulness, TRUE) THEN 'faithfulness'
        WHEN coalesce(answer_relevance < $w_answer, TRUE) THEN 'answer_relevance'
        ELSE 'sent'
    END AS waterfall,
    CASE waterfall
        WHEN 'retrieval' THEN context_relevance IS NULL
        WHEN 'answerability' THEN answerability IS NULL AND declines IS NOT TRUE
        WHEN 'faithfulness' THEN stopping = 0 AND weakest_support IS NULL
        WHEN 'answer_relevance' THEN answer_relevance IS NULL
        ELSE FALSE
    END AS waterfall_uncertain
FROM score
ORDER BY trace_id
