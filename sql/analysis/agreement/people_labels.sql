-- grain: the label of people, or of one reviewer, of one claim, as one recipe cuts it
-- inputs: reviewed_claims, trace_scores
-- parameters: $recipe; $reviewer (null: the final label of all), $app, $first, $last (null: all)
-- An outcome is a label, `tied` (two labels are equally frequent), or `cant_tell`. Claims that were picked for review
-- because of their labels are not `drawn`. An adjudication is not counted as the reviewer's own label.
WITH reviewed AS (
    SELECT
        *,
        list_filter(votes, lambda v: v.reviewer = $reviewer::VARCHAR AND NOT v.adjudicated) AS own
    FROM reviewed_claims
    WHERE recipe = $recipe
)
SELECT
    reviewed.date,
    reviewed.claim_id,
    reviewed.trace_id,
    s.app,
    coalesce(s.question_id, s.trace_id) AS question,
    if($reviewer::VARCHAR IS NULL, coalesce(reviewed.people, reviewed.outcome), own[1].label) AS outcome,
    NULL::DOUBLE AS confidence,
    reviewed.random AS drawn
FROM reviewed
JOIN trace_scores AS s USING (recipe, date, trace_id)
WHERE
    ($reviewer::VARCHAR IS NULL OR len(own) > 0)
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND reviewed.date BETWEEN coalesce($first::DATE, reviewed.date) AND coalesce($last::DATE, reviewed.date)
ORDER BY reviewed.date, reviewed.claim_id
