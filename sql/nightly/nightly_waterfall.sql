-- grain: one stage of the waterfall, or `sent`, of one night of one app and generator under one recipe
-- inputs: trace_scores of one recipe and day, reviewed_traces (see reviewed_traces.sql; of the same recipe, any days),
--   intervals (number, low and high by date, app and generator)
-- Each trace is counted in the stage at which it stops, or in `sent`. Stages that stop no trace have a row too. The
-- share of wrong answers is over reviewed answers, without those picked for review because of their labels
-- (docs/methods.md#the-waterfall-what-is-safe-to-send).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
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
)
SELECT
    * EXCLUDE (ends),
    (sum(n_stopped) OVER (PARTITION BY app, generator ORDER BY position DESC))::BIGINT AS n_reached,
    n_stopped / n AS share,
    ends['share_' || stage].low AS share_low,
    ends['share_' || stage].high AS share_high,
    n_wrong / nullif(n_reviewed, 0) AS wrong_share,
    ends['wrong_' || stage].low AS wrong_low,
    ends['wrong_' || stage].high AS wrong_high
FROM counted
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, position
