-- grain: one trace of the night of an alert, the worst ones first
-- inputs: trace_scores of one recipe and night, grades of its grader
-- parameters: $app, $generator, $number, $direction, $layer, $extractor_version, $most
-- Ordered by distance in the direction of the change, then traces of the likely layer, then by misused claims.
WITH scored AS (
    SELECT
        trace_scores.trace_id,
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
            ELSE grades.value
        END AS value
    FROM trace_scores
    LEFT JOIN grades
        ON
            grades.date = trace_scores.date
            AND grades.trace_id = trace_scores.trace_id
            AND grades.extractor_version = $extractor_version
            AND 'grade_' || grades.grade = $number
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
