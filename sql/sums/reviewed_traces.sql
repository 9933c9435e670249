-- grain: one trace under one recipe of which people labeled claims or the whole answer
-- inputs: reviews, reviewed_claims (see views/reviewed_claims.sql), and trace_scores of the days of the reviewed traces
-- parameters: $misuse_penalty, $partial_credit
-- docs/methods.md#noise-and-confidence, People. `wrong` is the answer's label by an adjudicator, or else by the
-- majority of reviewers (the latest label of each). Without such labels or on a tie, it is true if a reviewed claim is
-- unsupported or contradicted. Otherwise it is null if people can't tell or disagree on a claim, and false if not.
-- Groundedness and faithfulness are computed twice over the same claims, from people's labels and from the judge's.
-- These are the claims that have both and that were not picked for review because of their labels. Groundedness is null
-- unless people labeled all these claims as misused or not.
WITH answer AS (
    SELECT
        trace_id,
        count(DISTINCT coalesce(reviewer, '')) AS n_reviewers,
        bool_or(drawn) AS random,
        CASE sign(count(*) FILTER (decides AND label = 'wrong') - count(*) FILTER (decides AND label = 'right'))
            WHEN 1 THEN true WHEN -1 THEN false
        END AS wrong
    FROM (
        SELECT
            *,
            coalesce(adjudicated, false) AS final,
            bool_or(sampling IS NULL OR sampling = 'random') OVER (PARTITION BY trace_id) AS drawn,
            final OR NOT bool_or(final) OVER (PARTITION BY trace_id) AS decides
        FROM reviews
        WHERE label IN ('right', 'wrong')
        QUALIFY row_number() OVER (
            PARTITION BY trace_id, final, CASE WHEN NOT final THEN reviewer END
            ORDER BY coalesce(reviewed_at, imported_at) DESC, review_id DESC
        ) = 1
    )
    GROUP BY trace_id
),
claim AS (
    SELECT
        trace_id,
        count(people) AS n,
        bool_or(random) AS random,
        -- A claim that people can't tell or disagree on might be wrong.
        CASE
            WHEN bool_or(people IN ('unsupported', 'contradicted')) THEN true
            WHEN count(people) = count(*) THEN false
        END AS wrong
    FROM reviewed_claims
    WHERE outcome IS DISTINCT FROM 'not_a_claim'
    GROUP BY trace_id
),
compared AS (
    SELECT
        trace_id,
        count(*) AS n,
        count(*) FILTER (people = 'supported') AS people_supported,
        count(*) FILTER (people = 'partially_supported') AS people_partial,
        count(*) FILTER (people_misused) AS people_misused,
        count(*) FILTER (people_misused IS NULL) AS n_without_misuse,
        count(*) FILTER (judge = 'supported') AS judge_supported,
        count(*) FILTER (judge = 'partially_supported') AS judge_partial,
        count(*) FILTER (judge_misused) AS judge_misused
    FROM reviewed_claims
    WHERE people IS NOT NULL AND judge IS NOT NULL AND random
    GROUP BY trace_id
)
SELECT
    trace_scores.recipe,
    trace_scores.date,
    trace_scores.trace_id,
    trace_scores.app,
    trace_scores.generator,
    trace_scores.question_id,
    coalesce(answer.random, false) OR coalesce(claim.random, false) AS random,
    coalesce(answer.wrong, claim.wrong) AS wrong,
    coalesce(answer.n_reviewers, 0) AS n_answer_reviewers,
    coalesce(claim.n, 0) AS n_claims_reviewed,
    coalesce(compared.n, 0) AS n_claims_compared,
    CASE
        WHEN compared.n_without_misuse = 0
            THEN greatest(0.0, least(100.0, 100.0 * (
                people_supported + $partial_credit * people_partial - $misuse_penalty * people_misused
            ) / compared.n))
    END AS groundedness_people,
    CASE
        WHEN compared.n_without_misuse = 0
            THEN greatest(0.0, least(100.0, 100.0 * (
                judge_supported + $partial_credit * judge_partial - $misuse_penalty * judge_misused
            ) / compared.n))
    END AS groundedness_judge,
    people_supported / compared.n AS faithfulness_people,
    judge_supported / compared.n AS faithfulness_judge
FROM trace_scores
LEFT JOIN answer USING (trace_id)
LEFT JOIN claim USING (trace_id)
LEFT JOIN compared USING (trace_id)
WHERE answer.trace_id IS NOT NULL OR claim.trace_id IS NOT NULL
ORDER BY trace_scores.date, trace_scores.trace_id
