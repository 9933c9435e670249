-- Grain: one representative misused claim: the most confident ones of each app and generator, one per trace. Kinds of
-- misuse (the label, and whether another chunk supports the claim) alternate.
-- Inputs: claim_results, claims, trace_scores, traces. Parameters: $recipe, $night, $extractor_version, $each.
WITH misused AS (
    SELECT
        r.trace_id, c.ordinal, s.app, s.generator, r.confidence, coalesce(r.label, r.status) AS label,
        list_contains(r.patterns, 'citation_drift') AS drift
    FROM claim_results AS r
    INNER JOIN claims AS c
        ON c.claim_id = r.claim_id AND c.date = r.date AND c.extractor_version = $extractor_version
    INNER JOIN trace_scores AS s ON s.recipe = r.recipe AND s.date = r.date AND s.trace_id = r.trace_id
    WHERE r.recipe = $recipe AND r.date = $night AND r.misused
        AND r.trace_id NOT IN (SELECT trace_id FROM traces WHERE date = $night AND text_redacted_at IS NOT NULL)
    QUALIFY row_number() OVER (
        PARTITION BY r.trace_id ORDER BY r.confidence DESC NULLS LAST, c.ordinal
    ) = 1
),
varied AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY app, generator, label, drift ORDER BY confidence DESC NULLS LAST, trace_id
        ) AS turn
    FROM misused
)
SELECT trace_id, ordinal, app, generator
FROM varied
QUALIFY row_number() OVER (
    PARTITION BY app, generator ORDER BY turn, confidence DESC NULLS LAST, trace_id
) <= $each
ORDER BY app, generator, turn, confidence DESC NULLS LAST, trace_id
