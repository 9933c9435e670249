-- grain: one claim that people should label, most wanted first. Counts of what was left out are in every row; without
--   claims, they are in a single row.
-- inputs: trace_scores, traces, current_recipes, claim_results, claims, reviewed_claims, recipes, judges
-- parameters: $need, $count, $reviewers, $seed; $recipe_name or $recipe; $reviewer, $app, $first, $last (null: all)
-- docs/methods.md#peoples-labels. `misused` and `uncertain` depend on the judge's result: `uncertain` starts with
-- claims that the judge abstained from or did not judge, then those nearest to its threshold of support. `disputed`:
-- reviewers or the results of several recipes disagree. `random` draws answers by a hash of their ids, independent of
-- labels, so the draw stays the same until everything in it is labeled. Claims with enough reviews are left out; if
-- enough reviewers disagree, the claim waits for an adjudicator. `random` asks again for claims that were only picked
-- because of their labels; otherwise the drawn answers would lack the claims that seem bad.
WITH answer AS (
    SELECT s.recipe, s.date, s.trace_id, t.text_redacted_at IS NOT NULL AS redacted
    FROM trace_scores AS s
    JOIN traces AS t ON t.date = s.date AND t.trace_id = s.trace_id
    LEFT JOIN current_recipes AS c
        ON c.date = s.date AND c.app = s.app AND c.recipe = s.recipe AND c.recipe_name = $recipe_name::VARCHAR
    WHERE
        coalesce(s.recipe = $recipe::VARCHAR, c.recipe IS NOT NULL)
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND coalesce(s.date >= $first::DATE, TRUE)
        AND coalesce(s.date <= $last::DATE, TRUE)
),
claim AS (
    SELECT
        a.recipe,
        a.date,
        a.trace_id,
        r.* EXCLUDE (recipe, date, trace_id),
        c.ordinal,
        c.text,
        c.span_start,
        c.span_end,
        c.cited_chunk_ids
    FROM answer AS a
    JOIN claim_results AS r ON r.recipe = a.recipe AND r.date = a.date AND r.trace_id = a.trace_id
    JOIN claims AS c ON c.date = r.date AND c.claim_id = r.claim_id
    WHERE NOT a.redacted AND r.status <> 'na' -- a claim that is N/A has no evidence to check against
),
drawn AS (
    SELECT date, trace_id, md5($seed || ' ' || trace_id) AS place
    FROM (SELECT DISTINCT date, trace_id FROM claim)
    WHERE $need = 'random'
    ORDER BY place, date, trace_id
    LIMIT $count
),
differ AS (
    SELECT date, claim_id
    FROM claim_results
    WHERE
        $need = 'disputed'
        AND label IS NOT NULL
        AND coalesce(date >= $first::DATE, TRUE)
        AND coalesce(date <= $last::DATE, TRUE)
    GROUP BY date, claim_id
    HAVING count(DISTINCT label) > 1
),
scored AS (
    SELECT
        claim.*,
        coalesce(v.n_reviewers, 0) AS n_reviewers,
        coalesce(v.disputed, FALSE) AND $need = 'disputed' AS open_dispute,
        open_dispute AND n_reviewers >= $reviewers AS adjudicate,
        ($need <> 'random' OR coalesce(v.random, FALSE))
        AND (
            coalesce(v.adjudicated, FALSE)
            OR (coalesce(v.n_reviewers, 0) >= $reviewers AND NOT open_dispute)
            OR coalesce(list_contains(list_transform(v.votes, lambda x: x.reviewer), $reviewer::VARCHAR), FALSE)
        ) AS enough,
        CASE $need
            WHEN 'misused' THEN if(claim.misused, 0, NULL)
            WHEN 'uncertain'
                THEN CASE
                    WHEN claim.status <> 'judged' THEN 0
                    ELSE abs(
                        claim.p_supported
                        - coalesce(TRY_CAST(json_extract_string(j.definition, '$.thresholds.supported') AS DOUBLE), 0.5)
                    )
                END
            WHEN 'disputed'
                THEN CASE
                    WHEN open_dispute AND v.outcome = 'tied' THEN 0
                    WHEN open_dispute THEN 1
                    WHEN d.claim_id IS NOT NULL THEN 2
                END
            ELSE if(drawn.trace_id IS NULL, NULL, 0)
        END AS distance,
        coalesce(drawn.place, md5($seed || ' ' || claim.claim_id)) AS place
    FROM claim
    JOIN recipes AS p ON p.recipe = claim.recipe
    LEFT JOIN judges AS j
        ON j.judge_version = coalesce(p.judge_versions[coalesce(claim.stage, 1)], p.judge_version)
    LEFT JOIN reviewed_claims AS v ON v.recipe = claim.recipe AND v.claim_id = claim.claim_id
    LEFT JOIN differ AS d ON d.date = claim.date AND d.claim_id = claim.claim_id
    LEFT JOIN drawn ON drawn.date = claim.date AND drawn.trace_id = claim.trace_id
),
chosen AS (
    SELECT *
    FROM scored
    WHERE distance IS NOT NULL AND NOT enough
    ORDER BY distance, place, date, trace_id, ordinal, claim_id
    LIMIT CASE WHEN $need <> 'random' THEN $count END
),
total AS (
    SELECT
        (SELECT count(*) FROM scored WHERE distance IS NOT NULL AND enough) AS n_enough,
        (SELECT count(*) FROM scored WHERE distance IS NOT NULL AND NOT enough) AS n_wanted,
        (SELECT count(*) FROM answer WHERE redacted) AS n_redacted,
        (SELECT count(*) FROM answer) AS n_answers
)
SELECT
    total.*,
    chosen.recipe,
    chosen.date,
    chosen.trace_id,
    chosen.claim_id,
    chosen.text,
    chosen.span_start,
    chosen.span_end,
    chosen.cited_chunk_ids,
    chosen.adjudicate,
    chosen.judge_version,
    chosen.status,
    chosen.label,
    chosen.misused,
    chosen.p_supported,
    chosen.p_contradicted,
    chosen.confidence,
    chosen.deciding_chunk_ids
FROM total
LEFT JOIN chosen ON TRUE
ORDER BY chosen.distance, chosen.place, chosen.date, chosen.trace_id, chosen.ordinal, chosen.claim_id
