-- grain: one number of one app, generator and question under one recipe, over the scored traces of one arm
-- inputs: trace_numbers
-- parameters: $recipe; $generator, $prompt_version, $app, $first, $last (null: all)
SELECT
    number,
    app,
    generator,
    question,
    count(*) AS n,
    round(sum(value), 9) AS total,
    round(sum(value * value), 9) AS squares
FROM trace_numbers
WHERE
    recipe = $recipe
    AND coalesce(generator = $generator::VARCHAR, TRUE)
    AND ($prompt_version::VARCHAR IS NULL OR prompt_version = $prompt_version::VARCHAR)
    AND coalesce(app = $app::VARCHAR, TRUE)
    AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
GROUP BY number, app, generator, question
ORDER BY number, app, generator, question
