-- grain: one recipe that has scores, with its judge and its number of scored traces within the selected days and app
-- inputs: recipes, judges, trace_scores, runs
-- parameters: $app, $first, $last (null: all)
WITH score AS (
    SELECT
        recipe,
        date,
        trace_id,
        coalesce(app = $app::VARCHAR, TRUE)
        AND date BETWEEN coalesce($first::DATE, date) AND coalesce($last::DATE, date) AS wanted
    FROM trace_scores
),
scored AS (
    SELECT
        recipe,
        count(*) AS n_all,
        count(*) FILTER (wanted) AS n,
        min(date) FILTER (wanted) AS first_date,
        max(date) FILTER (wanted) AS last_date
    FROM score
    GROUP BY recipe
),
ran AS (
    SELECT
        recipe,
        min(started_at) AS first_run,
        max(started_at) FILTER (flow = 'nightly' AND status = 'completed') AS last_night,
        -- Only nights, because results of a backfill did not count for the day.
        bool_or(
            flow = 'nightly'
            AND coalesce(to_date >= $first::DATE, TRUE)
            AND coalesce(from_date <= $last::DATE, TRUE)
        ) AS in_nights
    FROM (SELECT * EXCLUDE (recipe), unnest(if(len(recipes) > 0, recipes, [recipe])) AS recipe FROM runs)
    GROUP BY recipe
)
SELECT
    r.recipe,
    r.name AS recipe_name,
    r.judge_version,
    coalesce(r.judge_versions, [r.judge_version]) AS judge_versions,
    coalesce(j.name, r.judge_version) AS judge_name,
    r.extractor_version,
    r.definition,
    scored.n_all,
    scored.n,
    (SELECT count(*) FROM (SELECT DISTINCT date, trace_id FROM score WHERE wanted)) AS n_any,
    scored.first_date,
    scored.last_date,
    ran.first_run,
    ran.last_night,
    coalesce(ran.in_nights, FALSE) AS in_nights
FROM recipes AS r
JOIN scored USING (recipe)
LEFT JOIN judges AS j ON j.judge_version = r.judge_version
LEFT JOIN ran USING (recipe)
ORDER BY ran.first_run NULLS FIRST, r.name, r.recipe
