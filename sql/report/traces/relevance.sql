-- Grain: one relevance score of the given traces: of the answer, of a chunk, or of all chunks together.
-- Inputs: relevance. Parameters: $night, $scorer_versions, $trace_ids.
SELECT trace_id, kind, chunk_id, method, score, failure
FROM relevance
WHERE
    scorer_version IN (SELECT unnest($scorer_versions)) AND date = $night
    AND trace_id IN (SELECT unnest($trace_ids))
