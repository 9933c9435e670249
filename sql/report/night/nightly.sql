-- Grain: a row of a nightly table, for one night, ordered by its columns.
-- Inputs: the table. Parameters: $table, $recipe, $night.
SELECT * FROM query_table($table)
WHERE recipe = $recipe AND date = $night
ORDER BY ALL
