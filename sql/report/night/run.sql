-- Grain: one row, the last nightly run that covered the night; none where no run is on record.
-- Inputs: runs. Parameters: $recipe, $night.
SELECT
    run_id, flow, started_at, ended_at, status, from_date, to_date, stages, traces_ingested, rows_quarantined,
    verdicts_computed, tokens_in, tokens_cached, tokens_out, gpu_seconds
FROM runs
WHERE flow = 'nightly' AND (recipe = $recipe OR list_contains(recipes, $recipe)) AND CAST($night AS DATE) BETWEEN from_date AND to_date
ORDER BY started_at DESC, run_id
LIMIT 1
