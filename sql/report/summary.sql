-- grain: one app and generator over a range of days under one recipe
-- inputs: trace_scores
-- parameters: $recipe, $first, $last
-- `score` is groundedness or citation groundedness, depending on the recipe's method. Its interval is computed from `n`
-- and `total`: for each question of the range, the number of traces with the score and their sum, in any order.
WITH scored AS (
    SELECT *, coalesce(groundedness_score, citation_groundedness) AS score
    FROM trace_scores
    WHERE recipe = $recipe AND date BETWEEN $first AND $last
),
sums AS (
    SELECT app, generator, list(n) AS n, list(total) AS total
    FROM (
        SELECT app, generator, count(score)::DOUBLE AS n, sum(score) AS total
        FROM scored
        WHERE score IS NOT NULL
        GROUP BY app, generator, coalesce(question_id, trace_id) -- null if the text was removed
    )
    GROUP BY app, generator
),
whole AS (
    SELECT
        app,
        generator,
        count(*) AS traces,
        count(groundedness_score) AS grounded_n,
        avg(groundedness_score) AS groundedness,
        avg(faithfulness) AS faithfulness,
        avg(utilization) AS utilization,
        avg(context_relevance) AS context_relevance,
        avg(answer_relevance) AS answer_relevance,
        sum(claims_total)::BIGINT AS claims,
        sum(claims_misused)::BIGINT AS misused,
        count(*) FILTER (groundedness_status = 'na') AS na,
        sum(claims_unjudged)::BIGINT AS unjudged,
        sum(claims_abstained)::BIGINT AS abstained,
        avg(citation_groundedness) AS citation_groundedness,
        sum(segments_total)::BIGINT AS segments,
        sum(segments_true)::BIGINT AS segments_true,
        sum(segments_dangling)::BIGINT AS segments_dangling,
        count(*) FILTER (citation_status = 'na') AS citation_na
    FROM scored
    GROUP BY app, generator
)
SELECT whole.*, sums.n, sums.total
FROM whole
LEFT JOIN sums USING (app, generator)
ORDER BY app, generator
