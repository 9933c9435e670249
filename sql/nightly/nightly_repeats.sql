-- grain: one number of one night of one app and generator under one recipe: groundedness and faithfulness or, for
--   method `citations`, citation groundedness
-- inputs: repeated_questions (see repeated_questions.sql), intervals (number, low and high by date, app and generator)
-- docs/methods.md#scores-of-one-trace. For k repeated questions with at least two scored traces (n_i each, N in total):
-- the mean of their means, of their sample standard deviations (spread), and of highest − lowest (range). The share of
-- the variance from repeats is W / (W + B), with the ANOVA estimators of one-way random effects:
--   W = Σ (n_i − 1)·s_i² / (N − k)                        variance within a question
--   M = Σ n_i·(mean_i − mean)² / (k − 1),  n0 = (N − Σ n_i² / N) / (k − 1)
--   B = (M − W) / n0, at least 0                          variance between questions
-- The share is null with fewer than two such questions, or if nothing varies.
-- Intervals: 95% over questions; none below two questions, of the share below three
-- (docs/methods.md#noise-and-confidence).
WITH placed AS (
    SELECT
        *,
        sum(n_scored * mean) FILTER (varied) OVER night / sum(n_scored) FILTER (varied) OVER night AS grand
    FROM repeated_questions
    WINDOW night AS (PARTITION BY recipe, date, app, generator, judge_version, number)
),
night AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        number,
        any_value(questions) AS questions,
        count(n) AS questions_repeated,
        coalesce(sum(n), 0)::BIGINT AS n,
        coalesce(sum(n_scored), 0)::BIGINT AS n_scored,
        coalesce(sum(n_na), 0)::BIGINT AS n_na,
        coalesce(sum(n_unjudged), 0)::BIGINT AS n_unjudged,
        coalesce(sum(n_abstained), 0)::BIGINT AS n_abstained,
        count(*) FILTER (varied) AS k,
        sum(n_scored) FILTER (varied)::DOUBLE AS total,
        rounded(avg(mean) FILTER (varied)) AS mean,
        rounded(avg(sqrt(variance)) FILTER (varied)) AS spread,
        rounded(avg(reach) FILTER (varied)) AS "range",
        sum((n_scored - 1) * variance) FILTER (varied) / (total - k) AS w,
        sum(n_scored * (mean - grand) ** 2) FILTER (varied) / nullif(k - 1, 0) AS m,
        (total - sum(n_scored ** 2) FILTER (varied) / total) / nullif(k - 1, 0) AS n0
    FROM placed
    GROUP BY recipe, date, app, generator, judge_version, number
),
parted AS (
    SELECT *, CASE WHEN k > 1 THEN w + greatest(0, (m - w) / n0) END AS variance
    FROM night
)
SELECT
    * EXCLUDE (k, total, w, m, n0, variance, ends),
    k AS questions_compared,
    ends[number || '_mean'].low AS mean_low,
    ends[number || '_mean'].high AS mean_high,
    ends[number || '_spread'].low AS spread_low,
    ends[number || '_spread'].high AS spread_high,
    ends[number || '_range'].low AS range_low,
    ends[number || '_range'].high AS range_high,
    rounded(w / nullif(round(variance, 12), 0)) AS share_repeats,
    ends[number || '_share_repeats'].low AS share_repeats_low,
    ends[number || '_share_repeats'].high AS share_repeats_high
FROM parted
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, number
