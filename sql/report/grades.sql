-- Grain: one of the six grades of one app and generator of the night.
-- Inputs: nightly_grades. Parameters: $recipe, $night.
SELECT
    app, generator, grade, n, n_scored, n_na, n_unparsable, n_failed, n_ungraded, grade_mean AS mean,
    grade_low AS low, grade_high AS high
FROM nightly_grades
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator, grade
