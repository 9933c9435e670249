-- grain: one app and generator over a range of days under one recipe
-- inputs: trace_scores
-- parameters: $recipe, $first, $last
-- groundedness_half: 1.96 cluster-robust standard errors, questions as clusters; the nightly tables hold the two ends.
-- It is of whichever the recipe's method gives, groundedness or citation groundedness.
WITH question AS (
    SELECT
        *,
        sum(total) OVER (PARTITION BY app, generator) / sum(n) OVER (PARTITION BY app, generator) AS mean
    FROM (
        SELECT app, generator, question_id, count(score) AS n, sum(score) AS total
        FROM (SELECT *, coalesce(groundedness_score, citation_groundedness) AS score FROM trace_scores)
        WHERE recipe = $recipe AND date BETWEEN $first AND $last AND score IS NOT NULL
        GROUP BY app, generator, question_id
    )
),
spread AS (
    SELECT
        app,
        generator,
        CASE WHEN count(*) > 1
            THEN 1.959964 * sqrt(count(*) / (count(*) - 1) * sum((total - mean * n) ** 2)) / sum(n)
        END AS groundedness_half
    FROM question
    GROUP BY app, generator
)
SELECT
    app,
    generator,
    count(*) AS traces,
    count(groundedness_score) AS grounded_n,
    avg(groundedness_score) AS groundedness,
    any_value(groundedness_half) AS groundedness_half,
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
FROM trace_scores
LEFT JOIN spread USING (app, generator)
WHERE recipe = $recipe AND date BETWEEN $first AND $last
GROUP BY app, generator
ORDER BY app, generator
