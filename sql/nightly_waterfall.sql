-- grain: one stage of the waterfall, or `sent`, of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, reviewed_traces (see reviewed_traces.sql; of the same recipe, any days)
-- METHODS section 7. Each trace stands in the stage that it stops at, or in `sent`. A stage that stops nobody has its
-- row too. Shares have 95% Wilson intervals; that of wrong answers is of the reviewed ones alone,
-- without those that were picked for review because of their labels.
WITH stage AS (
    SELECT unnest(['retrieval', 'answerability', 'faithfulness', 'answer_relevance', 'sent']) AS stage,
        unnest(range(1, 6))::INTEGER AS position
),
night AS (
    SELECT recipe, date, app, generator, judge_version, count(*) AS n
    FROM trace_scores
    GROUP BY ALL
),
stopped AS (
    SELECT
        app,
        generator,
        waterfall AS stage,
        count(*) AS n_stopped,
        count(*) FILTER (waterfall_uncertain) AS n_uncertain,
        count(wrong) AS n_reviewed,
        count(*) FILTER (wrong) AS n_wrong
    FROM trace_scores
    LEFT JOIN (SELECT trace_id, wrong FROM reviewed_traces WHERE random) AS reviewed USING (trace_id)
    GROUP BY ALL
),
counted AS (
    SELECT
        night.*,
        stage.stage,
        stage.position,
        coalesce(stopped.n_stopped, 0) AS n_stopped,
        coalesce(stopped.n_uncertain, 0) AS n_uncertain,
        coalesce(stopped.n_reviewed, 0) AS n_reviewed,
        coalesce(stopped.n_wrong, 0) AS n_wrong
    FROM night
    CROSS JOIN stage
    LEFT JOIN stopped USING (app, generator, stage)
),
shared AS (
    SELECT
        *,
        (sum(n_stopped) OVER (PARTITION BY app, generator ORDER BY position DESC))::BIGINT AS n_reached,
        n_stopped / n AS share,
        n_wrong / nullif(n_reviewed, 0) AS wrong_share,
        1.959964 AS z
    FROM counted
),
wilson AS (
    SELECT
        *,
        (share + z * z / (2 * n)) / (1 + z * z / n) AS centre,
        z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n) AS half,
        (wrong_share + z * z / (2 * n_reviewed)) / (1 + z * z / n_reviewed) AS wrong_centre,
        z * sqrt(wrong_share * (1 - wrong_share) / n_reviewed + z * z / (4 * n_reviewed * n_reviewed))
        / (1 + z * z / n_reviewed) AS wrong_half
    FROM shared
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    position,
    stage,
    n,
    n_reached,
    n_stopped,
    n_uncertain,
    share,
    greatest(0, centre - half) AS share_low,
    least(1, centre + half) AS share_high,
    n_reviewed,
    n_wrong,
    wrong_share,
    -- greatest and least take a null for no limit
    CASE WHEN n_reviewed > 0 THEN greatest(0, wrong_centre - wrong_half) END AS wrong_low,
    CASE WHEN n_reviewed > 0 THEN least(1, wrong_centre + wrong_half) END AS wrong_high
FROM wilson
ORDER BY app, generator, position
