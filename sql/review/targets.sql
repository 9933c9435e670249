-- grain: one line of a file of people's labels, with its answer and claim if the lake has them
-- inputs: line (line, trace_id, claim_id), traces, claims of any extractor version
-- docs/methods.md#peoples-labels. `shared`: other claims of the same extractor version have the same span.
WITH claim AS (
    SELECT
        trace_id,
        claim_id,
        span_start,
        span_end,
        count(*) OVER (PARTITION BY trace_id, extractor_version, span_start, span_end) > 1 AS shared
    FROM claims
    WHERE trace_id IN (SELECT trace_id FROM line)
)
SELECT
    line.line,
    traces.date,
    traces.answer,
    traces.text_redacted_at IS NOT NULL AS text_redacted,
    claim.claim_id IS NOT NULL AS claim_known,
    claim.span_start,
    claim.span_end,
    claim.shared
FROM line
LEFT JOIN traces ON line.trace_id = traces.trace_id
LEFT JOIN claim ON line.trace_id = claim.trace_id AND line.claim_id = claim.claim_id
ORDER BY line.line
