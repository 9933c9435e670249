-- grain: one row, the logged cost of the answers of one arm's scored traces
-- inputs: trace_scores, traces
-- parameters: $recipe; $generator, $prompt_version, $app, $first, $last (null: all)
SELECT
    count(*) AS n,
    avg(t.tokens_in) AS tokens_in,
    avg(t.tokens_out) AS tokens_out,
    median(t.latency_ms) / 1000 AS latency_s,
    avg(t.cost) AS cost
FROM trace_scores AS s
JOIN traces AS t ON t.date = s.date AND t.trace_id = s.trace_id
WHERE
    s.recipe = $recipe
    AND coalesce(s.generator = $generator::VARCHAR, TRUE)
    AND ($prompt_version::VARCHAR IS NULL OR s.prompt_version = $prompt_version::VARCHAR)
    AND coalesce(s.app = $app::VARCHAR, TRUE)
    AND s.date BETWEEN coalesce($first::DATE, s.date) AND coalesce($last::DATE, s.date)
