-- Grain: one chunk of the given traces: how relevant it is to the question.
-- Inputs: relevance. Parameters: $night, $scorer_version, $trace_ids.
SELECT trace_id, chunk_id, score, failure
FROM relevance
WHERE
    kind = 'context' AND scorer_version = $scorer_version AND date = $night
    AND trace_id IN (SELECT unnest($trace_ids))
