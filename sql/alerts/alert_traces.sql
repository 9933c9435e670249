-- grain: one trace of the night of an alert, the worst ones first
-- inputs: trace_scores of one recipe and night
-- parameters: $app, $generator, $number, $direction, $layer, $most
-- The traces that lie farthest in the direction of the change; of equal ones, those of the likely layer, then those with
-- most misused claims.
WITH scored AS (
    SELECT
        trace_id,
        diagnosis,
        claims_misused,
        CASE $number
            WHEN 'groundedness' THEN groundedness_score
            WHEN 'faithfulness' THEN faithfulness
            WHEN 'utilization' THEN utilization
            WHEN 'context_relevance' THEN context_relevance
            WHEN 'answer_relevance' THEN answer_relevance
            WHEN 'answerability' THEN answerability
            WHEN 'citation_groundedness' THEN citation_groundedness
        END AS value
    FROM trace_scores
    WHERE app = $app AND generator = $generator
)
SELECT trace_id
FROM scored
WHERE value IS NOT NULL
ORDER BY
    CASE $direction WHEN 'down' THEN value ELSE -value END,
    diagnosis IS NOT DISTINCT FROM $layer DESC,
    claims_misused DESC,
    trace_id
LIMIT $most
