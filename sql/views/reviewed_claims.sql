-- grain: one claim under one recipe that people labeled
-- inputs: claim_results, claims, reviews
-- docs/methods.md#peoples-labels. A review belongs to the claim that it names, or else to the claim whose span overlaps
-- its span most, with intersection / union ≥ 0.5. If several claims have that span, the review is left out. Each
-- reviewer's latest label counts, and of several reviewers the most frequent label. `outcome` is `labeled`, `tied`,
-- `cant_tell` or `not_a_claim`; `people` is null unless it is `labeled`. The latest label of an adjudicator overrides
-- all others. A claim without citations is not misused. If reviewers don't label misuse or are tied, an unsupported
-- claim is misused.
WITH given AS (
    SELECT *, coalesce(reviewed_at, imported_at) AS given_at, coalesce(adjudicated, false) AS final
    FROM reviews
    WHERE label NOT IN ('right', 'wrong') -- a grade has no label
),
named AS (
    SELECT given.*, claims.claim_id AS own_id, claims.extractor_version
    FROM given
    INNER JOIN claims USING (claim_id)
),
placed AS (
    SELECT
        given.*,
        claims.claim_id AS own_id,
        claims.extractor_version,
        least(given.span_end, claims.span_end) - greatest(given.span_start, claims.span_start) AS common,
        common / (greatest(given.span_end, claims.span_end) - least(given.span_start, claims.span_start)) AS overlap,
        max(overlap) OVER (PARTITION BY given.review_id, claims.extractor_version) AS best
    FROM given
    INNER JOIN claims
        ON given.trace_id = claims.trace_id
        AND claims.kind = 'claim'
        AND given.span_start < claims.span_end
        AND claims.span_start < given.span_end
    ANTI JOIN named
        ON named.review_id = given.review_id
        AND named.extractor_version IS NOT DISTINCT FROM claims.extractor_version
),
nearest AS (
    SELECT * EXCLUDE (common, overlap, best)
    FROM placed
    WHERE overlap = best AND overlap >= 0.5
    QUALIFY count(DISTINCT own_id) OVER (PARTITION BY review_id, extractor_version) = 1
),
vote AS (
    SELECT
        *,
        -- A claim that was drawn at random once stays so, even if it is picked for other reasons later.
        bool_or(sampling IS NULL OR sampling = 'random') OVER (PARTITION BY own_id) AS drawn,
        final OR NOT bool_or(final) OVER (PARTITION BY own_id) AS decides
    FROM (FROM named UNION ALL BY NAME FROM nearest)
    QUALIFY row_number() OVER (
        PARTITION BY own_id, final, CASE WHEN NOT final THEN reviewer END ORDER BY given_at DESC, review_id DESC
    ) = 1
),
tally AS (
    SELECT own_id, label, count(*) AS n, max(n) OVER (PARTITION BY own_id) AS most
    FROM vote
    WHERE decides
    GROUP BY own_id, label
),
winner AS (
    SELECT own_id, CASE WHEN count(*) = 1 THEN any_value(label) END AS label
    FROM tally
    WHERE n = most
    GROUP BY own_id
),
by_claim AS (
    SELECT
        own_id,
        count(DISTINCT coalesce(reviewer, '')) AS n_reviewers, -- all reviewers without a name count as one
        bool_or(drawn) AS random,
        bool_or(final) AS adjudicated,
        NOT bool_or(final) AND count(DISTINCT label) > 1 AS disputed,
        CASE
            sign(count(*) FILTER (decides AND misused) - count(*) FILTER (decides AND NOT misused))
            WHEN 1 THEN true WHEN -1 THEN false
        END AS misused,
        list(
            {'reviewer': reviewer, 'label': label, 'misused': misused, 'adjudicated': final}
            ORDER BY final, reviewer NULLS FIRST
        ) AS votes
    FROM vote
    GROUP BY own_id
)
SELECT
    claim_results.recipe,
    claim_results.date,
    claim_results.trace_id,
    claim_results.claim_id,
    by_claim.n_reviewers,
    by_claim.random,
    CASE
        WHEN winner.label IS NULL THEN 'tied'
        WHEN winner.label IN ('cant_tell', 'not_a_claim') THEN winner.label
        ELSE 'labeled'
    END AS outcome,
    if(outcome = 'labeled', winner.label, NULL) AS people,
    CASE
        WHEN people IS NULL THEN NULL
        WHEN len(claims.cited_chunk_ids) = 0 THEN false
        WHEN by_claim.misused IS NOT NULL THEN by_claim.misused
        WHEN people = 'unsupported' THEN true
    END AS people_misused,
    claim_results.status AS judge_status,
    claim_results.label AS judge,
    claim_results.misused AS judge_misused,
    claim_results.to_check,
    claim_results.confidence,
    claim_results.p_supported,
    claim_results.p_contradicted,
    by_claim.adjudicated,
    by_claim.disputed,
    by_claim.votes
FROM claim_results
INNER JOIN claims USING (claim_id)
INNER JOIN by_claim ON by_claim.own_id = claim_results.claim_id
INNER JOIN winner ON winner.own_id = claim_results.claim_id
ORDER BY claim_results.date, claim_results.trace_id, claims.ordinal, claim_results.claim_id
