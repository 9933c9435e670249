-- grain: one of the given claims under one of two recipes, with its texts and the explanation of the deciding pair
-- inputs: claim_details, pair_verdicts
-- parameters: $recipe_a, $recipe_b, $claim_ids
WITH explained AS (
    SELECT l.recipe, l.claim_id, l.explanation
    FROM pair_verdicts AS l
    JOIN claim_details AS r USING (recipe, date, claim_id)
    WHERE l.recipe IN ($recipe_a, $recipe_b) AND list_contains($claim_ids, l.claim_id) AND l.explanation IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY l.recipe, l.claim_id
        ORDER BY
            l.stage = coalesce(r.stage, 1) DESC,
            coalesce(l.label = r.label, FALSE) DESC,
            coalesce(list_has_any(l.chunk_ids, r.deciding_chunk_ids), FALSE) DESC,
            l.p_supported DESC NULLS LAST,
            l.request_key
    ) = 1
)
SELECT r.recipe, r.claim_id, r.text, r.cited_chunk_ids, r.deciding_chunk_id, r.deciding_chunk_text, explained.explanation
FROM claim_details AS r
LEFT JOIN explained USING (recipe, claim_id)
WHERE r.recipe IN ($recipe_a, $recipe_b) AND list_contains($claim_ids, r.claim_id)
ORDER BY r.recipe, r.claim_id
