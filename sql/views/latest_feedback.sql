-- grain: one trace with feedback, as it was read last
-- inputs: feedback
SELECT *
FROM feedback
QUALIFY row_number() OVER (PARTITION BY date, trace_id ORDER BY read_at DESC) = 1
