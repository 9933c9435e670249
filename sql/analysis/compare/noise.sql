-- grain: the latest measurement of one judge's noise under one recipe
-- inputs: judge_noise
-- parameters: $recipe
SELECT judge_version, measured_at, n, number, trace_sd
FROM judge_noise
WHERE recipe = $recipe AND trace_sd IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY judge_version ORDER BY measured_at DESC) = 1
ORDER BY judge_version
