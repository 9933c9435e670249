-- Grain: one reason at one stage: how many rows of the night were refused for it.
-- Inputs: quarantine. Parameters: $night.
SELECT stage, reason, count(*) AS n
FROM quarantine
WHERE date = $night
GROUP BY stage, reason
ORDER BY n DESC, stage, reason
