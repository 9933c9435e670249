-- grain: one night of one app and generator under one recipe, if traces have sessions
-- inputs: sessions (see sessions.sql), intervals (number, low and high by date, app and generator)
-- Intervals: 95% over sessions; none below two (docs/methods.md#noise-and-confidence).
WITH night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        count(*) AS n,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(*) FILTER (status = 'na') AS n_na,
        count(*) FILTER (status = 'unjudged') AS n_unjudged,
        count(*) FILTER (status = 'abstained') AS n_abstained,
        sum(traces)::BIGINT AS traces,
        coalesce(sum(ungrounded) FILTER (status = 'scored'), 0)::BIGINT AS n_ungrounded,
        coalesce(sum(misused) FILTER (status = 'scored'), 0)::BIGINT AS n_misused
    FROM sessions
    GROUP BY recipe, date, app, generator, judge_version
)
SELECT
    night.*,
    n_ungrounded / nullif(n_scored, 0) AS ungrounded_share,
    ends['ungrounded'].low AS ungrounded_share_low,
    ends['ungrounded'].high AS ungrounded_share_high,
    n_misused / nullif(n_scored, 0) AS misused_share,
    ends['misused'].low AS misused_share_low,
    ends['misused'].high AS misused_share_high
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator
