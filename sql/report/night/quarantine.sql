-- Grain: one reason at one stage, with the number of rows of the night that were refused.
-- Inputs: quarantine. Parameters: $night.
SELECT stage, reason, count(*) AS n
FROM quarantine
WHERE date = $night
GROUP BY stage, reason
ORDER BY n DESC, stage, reason
