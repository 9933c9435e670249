-- Grain: one refused row of the night, without its text; the first $limit by source and line.
-- Inputs: quarantine. Parameters: $night, $limit.
SELECT stage, reason, detail, source, line
FROM quarantine
WHERE date = $night
ORDER BY source, line, stage, reason
LIMIT $limit
