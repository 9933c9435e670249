-- grain: one answer, with all texts that people need to check its claims
-- inputs: traces
-- parameters: $dates, $trace_ids
SELECT date, trace_id, app, generator, question, answer, chunks
FROM traces
WHERE date IN (SELECT unnest($dates)) AND trace_id IN (SELECT unnest($trace_ids)) AND text_redacted_at IS NULL
ORDER BY date, trace_id
