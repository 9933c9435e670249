-- Grain: one app of the night, with agreement and noise of the judge on its traces.
-- Inputs: nightly_trust, judge_noise. Parameters: $recipe, $night.
WITH measured AS (
    SELECT judge_version, n, agreement, agreement_low, agreement_high
    FROM judge_noise
    WHERE recipe = $recipe
    QUALIFY row_number() OVER (PARTITION BY judge_version ORDER BY measured_at DESC) = 1
)
SELECT
    t.*, measured.n AS noise_n, measured.agreement AS noise, measured.agreement_low AS noise_low,
    measured.agreement_high AS noise_high
FROM nightly_trust AS t
LEFT JOIN measured USING (judge_version)
WHERE t.recipe = $recipe AND t.date = $night
ORDER BY t.app
