-- grain: what people, or one of them, say of one claim, as one recipe cuts it
-- inputs: reviewed_claims, trace_scores
-- parameters: $recipe; $reviewer (null: what counts of all), $app, $first, $last (null: all)
-- An outcome is a label, `tied` where as many say one thing as another, or `cant_tell`. What was picked for review because
-- of its labels is not `drawn`. What a reviewer said to settle a dispute is no label of one among several.
WITH said AS (
    SELECT
        *,
        list_filter(votes, lambda v: v.reviewer = $reviewer::VARCHAR AND NOT v.adjudicated) AS own
    FROM reviewed_claims
    WHERE recipe = $recipe
)
SELECT
    said.date,
    said.claim_id,
    said.trace_id,
    s.app,
    coalesce(s.question_id, s.trace_id) AS question,
    if($reviewer::VARCHAR IS NULL, coalesce(said.people, said.outcome), own[1].label) AS outcome,
    NULL::DOUBLE AS confidence,
    said.random AS drawn
FROM said
JOIN trace_scores AS s USING (recipe, date, trace_id)
WHERE
    ($reviewer::VARCHAR IS NULL OR len(own) > 0)
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND coalesce(said.date >= $first::DATE, TRUE)
    AND coalesce(said.date <= $last::DATE, TRUE)
ORDER BY said.date, said.claim_id
