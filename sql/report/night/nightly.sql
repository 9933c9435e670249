-- Grain: that of a nightly table: the rows of one night, in the order of its columns.
-- Inputs: the table. Parameters: $table, $recipe, $night.
SELECT * FROM query_table($table)
WHERE recipe = $recipe AND date = $night
ORDER BY ALL
