-- grain: one row, the last completed night
-- inputs: runs
SELECT started_at, ended_at, rows_quarantined, traces_ingested, verdicts_computed, tokens_in, tokens_out, gpu_seconds
FROM runs
WHERE flow = 'nightly' AND status = 'completed'
ORDER BY started_at DESC
LIMIT 1
