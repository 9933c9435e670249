-- grain: one judge of one recipe, with the cost of its verdicts on traces that another recipe has too, at its mean
--   speed
-- inputs: trace_scores, recipes, judges, pairs, verdicts, runs
-- parameters: $recipe, $other; $app, $first, $last (null: all)
-- Every paid verdict counts, including repeated failures, but not second verdicts that measure noise.
WITH shared AS (
    SELECT date, trace_id
    FROM trace_scores
    WHERE
        recipe = $recipe
        AND coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date)
    INTERSECT
    SELECT date, trace_id FROM trace_scores WHERE recipe = $other
),
judge AS (
    SELECT position, judge_version
    FROM (
        SELECT
            unnest(coalesce(judge_versions, [judge_version])) AS judge_version,
            unnest(range(1, 1 + len(coalesce(judge_versions, [judge_version])))) AS position
        FROM recipes
        WHERE recipe = $recipe
    )
),
judged AS (
    SELECT DISTINCT judge.judge_version, p.request_key
    FROM pairs AS p
    JOIN shared USING (date, trace_id)
    JOIN judge ON judge.position = coalesce(p.stage, 1)
    WHERE p.recipe = $recipe
),
spent AS (
    SELECT
        judge_version,
        count(*) AS verdicts,
        sum(v.tokens_in)::BIGINT AS tokens_in,
        coalesce(sum(v.tokens_cached), 0)::BIGINT AS tokens_cached,
        sum(v.tokens_out)::BIGINT AS tokens_out
    FROM judged
    JOIN verdicts AS v USING (judge_version, request_key)
    WHERE v.sample = 0
    GROUP BY judge_version
),
speed AS (
    SELECT
        stage.judge_version AS judge_version,
        sum(stage.computed)::BIGINT AS computed,
        sum(stage.seconds) AS seconds,
        sum(stage.seconds * coalesce(stage.gpus, 0)) AS gpu_seconds
    FROM (SELECT unnest(stages) AS stage FROM runs)
    WHERE stage.judge_version IS NOT NULL AND stage.computed > 0
    GROUP BY ALL
)
SELECT
    each_judge.judge_version,
    coalesce(j.name, each_judge.judge_version) AS judge_name,
    coalesce(spent.verdicts, 0) AS verdicts,
    coalesce(spent.tokens_in, 0) AS tokens_in,
    coalesce(spent.tokens_cached, 0) AS tokens_cached,
    coalesce(spent.tokens_out, 0) AS tokens_out,
    speed.seconds * coalesce(spent.verdicts, 0) / speed.computed AS seconds,
    speed.gpu_seconds * coalesce(spent.verdicts, 0) / speed.computed AS gpu_seconds
FROM (SELECT judge_version, min(position) AS position FROM judge GROUP BY judge_version) AS each_judge
LEFT JOIN judges AS j USING (judge_version)
LEFT JOIN spent USING (judge_version)
LEFT JOIN speed USING (judge_version)
ORDER BY each_judge.position
