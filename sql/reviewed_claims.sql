-- grain: one claim_result under one recipe that people labelled
-- inputs: reviews, and of the days of their traces claims (as the recipe's extractor cuts them) and claim_results
-- METHODS section 13. A review belongs to the claim that it names, else to the one whose span its own overlaps most,
-- with intersection / union ≥ 0.5; if several claims share that span, nobody knows which one is meant, and it is left
-- out. Of each reviewer the latest label counts, of several reviewers the most frequent one: `outcome` is `labelled`,
-- `tied`, or `cant_tell`, and `people` is null but for the first.
-- A reviewer who did not say whether the claim is misused has said it where it cites nothing, or nothing supports it.
WITH given AS (
    SELECT *, coalesce(reviewed_at, imported_at) AS given_at
    FROM reviews
    WHERE label NOT IN ('right', 'wrong')
),
named AS (
    SELECT given.*, claims.claim_id AS own_id
    FROM given
    INNER JOIN claims USING (claim_id)
),
placed AS (
    SELECT
        given.*,
        claims.claim_id AS own_id,
        least(given.span_end, claims.span_end) - greatest(given.span_start, claims.span_start) AS common,
        common / (greatest(given.span_end, claims.span_end) - least(given.span_start, claims.span_start)) AS overlap,
        max(overlap) OVER (PARTITION BY review_id) AS best
    FROM given
    INNER JOIN claims
        ON given.trace_id = claims.trace_id
        AND given.span_start < claims.span_end
        AND claims.span_start < given.span_end
    WHERE given.claim_id IS NULL OR given.claim_id NOT IN (SELECT claim_id FROM claims)
),
nearest AS (
    SELECT * EXCLUDE (common, overlap, best)
    FROM placed
    WHERE overlap = best AND overlap >= 0.5
    QUALIFY count(DISTINCT own_id) OVER (PARTITION BY review_id) = 1
),
vote AS (
    -- How a claim was drawn stays so, whatever it is shown to people for later on.
    SELECT *, bool_or(sampling IS NULL OR sampling = 'random') OVER (PARTITION BY own_id) AS drawn
    FROM (FROM named UNION ALL BY NAME FROM nearest)
    QUALIFY row_number() OVER (PARTITION BY own_id, reviewer ORDER BY given_at DESC, review_id DESC) = 1
),
tally AS (
    SELECT own_id, label, count(*) AS n, max(n) OVER (PARTITION BY own_id) AS most
    FROM vote
    GROUP BY own_id, label
),
winner AS (
    SELECT own_id, CASE WHEN count(*) = 1 THEN any_value(label) END AS label
    FROM tally
    WHERE n = most
    GROUP BY own_id
),
said AS (
    SELECT
        own_id,
        count(*) AS n_reviewers,
        bool_or(drawn) AS random,
        CASE sign(count(*) FILTER (misused) - count(*) FILTER (NOT misused)) WHEN 1 THEN true WHEN -1 THEN false END
            AS misused
    FROM vote
    GROUP BY own_id
)
SELECT
    claim_results.recipe,
    claim_results.date,
    claim_results.trace_id,
    claim_results.claim_id,
    said.n_reviewers,
    said.random,
    CASE winner.label WHEN 'cant_tell' THEN 'cant_tell' ELSE if(winner.label IS NULL, 'tied', 'labelled') END AS outcome,
    nullif(winner.label, 'cant_tell') AS people,
    CASE
        WHEN people IS NULL THEN NULL
        WHEN len(claims.cited_chunk_ids) = 0 THEN false
        WHEN said.misused IS NOT NULL THEN said.misused
        WHEN people = 'unsupported' THEN true
    END AS people_misused,
    claim_results.status AS judge_status,
    claim_results.label AS judge,
    claim_results.misused AS judge_misused,
    claim_results.confidence,
    claim_results.p_supported,
    claim_results.p_contradicted
FROM claim_results
INNER JOIN claims USING (claim_id)
INNER JOIN said ON said.own_id = claim_results.claim_id
INNER JOIN winner ON winner.own_id = claim_results.claim_id
ORDER BY claim_results.date, claim_results.trace_id, claims.ordinal, claim_results.claim_id
