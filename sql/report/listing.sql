-- Grain: one trace of the night that gets a page, those most worth reading first; none without its text. Apps and generators take turns, so
-- that the limit leaves none of them out.
-- Inputs: trace_scores, traces. Parameters: $recipe, $night, $limit.
WITH ranked AS (
    SELECT
        trace_id, app, generator, groundedness_status, groundedness_score, claims_total, claims_judged,
        claims_misused, claims_unsupported, claims_contradicted, context_relevance_status, context_relevance,
        answer_relevance_status, answer_relevance, diagnosis, citation_status, citation_groundedness,
        row_number() OVER (
            PARTITION BY app, generator
            ORDER BY
                claims_misused DESC, coalesce(groundedness_score, 100 * citation_groundedness) ASC NULLS LAST,
                claims_contradicted DESC,
                claims_unjudged + claims_abstained DESC, trace_id
        ) AS turn
    FROM trace_scores
    WHERE recipe = $recipe AND date = $night
)
SELECT ranked.*, t.question
FROM ranked
INNER JOIN (
    SELECT trace_id, question FROM traces WHERE date = $night AND text_redacted_at IS NULL
) AS t USING (trace_id)
ORDER BY turn, app, generator
LIMIT $limit
