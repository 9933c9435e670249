-- Grain: one of the six grades of the given traces.
-- Inputs: grades. Parameters: $night, $grader_version, $extractor_version, $trace_ids.
SELECT trace_id, grade, status, value, failure, explanation
FROM grades
WHERE
    grader_version = $grader_version AND extractor_version = $extractor_version AND date = $night
    AND trace_id IN (SELECT unnest($trace_ids))
