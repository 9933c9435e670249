-- grain: one row of `batch` that is not a new trace
-- inputs: batch (row, trace_id, content_hash), traces (what the lake holds), arrived (rows of this run before the batch)
-- The first content of a trace id is kept. A later row with other content is refused. A row with the same content has
-- no reason.
WITH existing AS (
    SELECT trace_id, content_hash
    FROM traces
    SEMI JOIN batch USING (trace_id)
    UNION ALL
    SELECT trace_id, content_hash
    FROM arrived
    SEMI JOIN batch USING (trace_id)
),
stored AS (
    SELECT trace_id, any_value(content_hash) AS content_hash
    FROM existing
    GROUP BY trace_id
),
compared AS (
    SELECT
        batch.row,
        batch.content_hash,
        stored.content_hash AS lake_hash,
        first_value(batch.content_hash) OVER same AS first_hash,
        row_number() OVER same AS nth
    FROM batch
    LEFT JOIN stored USING (trace_id)
    WINDOW same AS (PARTITION BY batch.trace_id ORDER BY batch.row)
)
SELECT
    row,
    CASE WHEN content_hash <> coalesce(lake_hash, first_hash) THEN 'conflicting_duplicate' END AS reason
FROM compared
WHERE lake_hash IS NOT NULL OR nth > 1
ORDER BY row
