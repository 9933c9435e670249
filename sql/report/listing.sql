-- Grain: one trace of the night, most worth reading first. Apps and generators alternate, so that $limit leaves none of
--   them
-- out. Traces whose text was removed come last.
-- Inputs: trace_scores, traces, claim_results, reviews, reviewed_claims. Parameters: $recipe, $night, $limit,
--   $characters
-- (largest length of question and answer).
WITH ranked AS (
    SELECT
        s.*,
        coalesce(s.citation_groundedness, s.groundedness_score) AS score,
        coalesce(s.citation_status, s.groundedness_status) AS status,
        t.text_redacted_at IS NULL AS has_text,
        row_number() OVER (
            PARTITION BY s.app, s.generator, has_text
            ORDER BY
                s.claims_misused DESC, score ASC NULLS LAST, s.claims_contradicted DESC,
                s.claims_unjudged + s.claims_abstained DESC, s.trace_id
        ) AS turn
    FROM trace_scores AS s
    INNER JOIN (SELECT trace_id, text_redacted_at FROM traces WHERE date = $night) AS t USING (trace_id)
    WHERE s.recipe = $recipe AND s.date = $night
    ORDER BY has_text DESC, turn, s.app, s.generator
    LIMIT $limit
),
claim AS (
    SELECT
        trace_id,
        list_sort(list(DISTINCT coalesce(language, 'und'))) AS languages,
        list_sort(list_distinct(flatten(list(patterns)))) AS patterns
    FROM claim_results
    WHERE recipe = $recipe AND date = $night
    GROUP BY trace_id
),
people AS (
    SELECT trace_id, count(*) AS n, bool_or(disputed) AS disputed
    FROM reviewed_claims
    WHERE recipe = $recipe AND date = $night
    GROUP BY trace_id
),
whole AS (
    SELECT DISTINCT trace_id FROM reviews WHERE date = $night AND label IN ('right', 'wrong')
)
SELECT
    r.trace_id, r.timestamp, r.app, r.generator, r.prompt_version, r.question_id, r.turn, r.has_text, r.status, r.score,
    r.groundedness_status, r.groundedness_score, r.citation_status, r.citation_groundedness, r.claims_total,
    r.claims_judged, r.claims_supported, r.claims_partial, r.claims_unsupported, r.claims_contradicted,
    r.claims_misused, r.claims_to_check, r.claims_unjudged, r.claims_abstained, r.context_relevance_status,
    r.context_relevance, r.answer_relevance_status, r.answer_relevance, r.diagnosis,
    claim.languages, claim.patterns,
    CASE
        WHEN people.disputed THEN 'disputed'
        WHEN whole.trace_id IS NOT NULL OR people.n >= r.claims_total THEN 'reviewed'
        WHEN people.n > 0 THEN 'partly_reviewed'
        ELSE 'not_reviewed'
    END AS review,
    left(t.question, $characters) AS question,
    left(t.answer, $characters) AS answer,
    t.tags
FROM ranked AS r
INNER JOIN (SELECT trace_id, question, answer, tags FROM traces WHERE date = $night) AS t USING (trace_id)
LEFT JOIN claim USING (trace_id)
LEFT JOIN people USING (trace_id)
LEFT JOIN whole USING (trace_id)
ORDER BY r.has_text DESC, r.turn, r.app, r.generator
