-- grain: one app and generator over a range of days under one recipe
-- inputs: trace_scores
-- parameters: $recipe, $first, $last
SELECT
    app,
    generator,
    count(*) AS traces,
    count(groundedness_score) AS grounded_n,
    avg(groundedness_score) AS groundedness,
    CASE WHEN count(groundedness_score) > 1
        THEN 1.959964 * stddev_samp(groundedness_score) / sqrt(count(groundedness_score))
    END AS groundedness_half,
    avg(faithfulness) AS faithfulness,
    avg(utilization) AS utilization,
    avg(context_relevance) AS context_relevance,
    avg(answer_relevance) AS answer_relevance,
    sum(claims_total)::BIGINT AS claims,
    sum(claims_misused)::BIGINT AS misused,
    count(*) FILTER (groundedness_status = 'na') AS na,
    sum(claims_unjudged)::BIGINT AS unjudged,
    sum(claims_abstained)::BIGINT AS abstained
FROM trace_scores
WHERE recipe = $recipe AND date BETWEEN $first AND $last
GROUP BY app, generator
ORDER BY app, generator
