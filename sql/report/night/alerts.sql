-- Grain: one alert that fired on the night, or whose end was detected on it.
-- Inputs: alerts. Parameters: $recipe, $night.
SELECT
    date, app, generator, number, direction, since, nights, nights_before, baseline_mean, mean, change, change_low,
    change_high, noise_sd, layer, worst_trace_ids, status, until, recovered_on, date = $night AS fired
FROM alerts
WHERE recipe = $recipe AND ($night = date OR $night = recovered_on)
ORDER BY app, generator, number, date
