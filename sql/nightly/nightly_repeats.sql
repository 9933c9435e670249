-- grain: one number of one night of one app and generator under one recipe: groundedness and faithfulness, or, of recipes
-- of method `citations`, citation groundedness
-- inputs: repeated_questions (see repeated_questions.sql), intervals (number, low and high by date, app and generator)
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- METHODS section 4. The k repeated questions with at least two scored traces (n_i each, N together) enter: the mean of
-- their means, of their sample standard deviations (spread), and of highest − lowest (range). Share of the variance that
-- comes from repeats = W / (W + B), one-way random effects by the ANOVA estimators:
--   W = Σ (n_i − 1)·s_i² / (N − k)                        variance within a question
--   M = Σ n_i·(mean_i − mean)² / (k − 1),  n0 = (N − Σ n_i² / N) / (k − 1)
--   B = (M − W) / n0, at least 0                          variance between questions
-- It is null below two such questions, and where nothing varies at all.
-- Intervals: 95% over questions; none below two questions, of the share below three (METHODS section 11).
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
        avg(mean) FILTER (varied) AS mean,
        avg(sqrt(variance)) FILTER (varied) AS spread,
        avg(reach) FILTER (varied) AS reach,
        sum((n_scored - 1) * variance) FILTER (varied) / (total - k) AS w,
        sum(n_scored * (mean - grand) ** 2) FILTER (varied) / nullif(k - 1, 0) AS m,
        (total - sum(n_scored ** 2) FILTER (varied) / total) / nullif(k - 1, 0) AS n0
    FROM placed
    GROUP BY recipe, date, app, generator, judge_version, number
),
parted AS (
    SELECT *, CASE WHEN k > 1 THEN w + greatest(0, (m - w) / n0) END AS variance
    FROM night
),
ends AS (
    SELECT date, app, generator, map(list(number), list({'low': low, 'high': high})) AS of
    FROM intervals
    GROUP BY date, app, generator
)
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    number,
    questions,
    questions_repeated,
    n,
    n_scored,
    n_na,
    n_unjudged,
    n_abstained,
    k AS questions_compared,
    round(round(mean, 12), 6) AS mean,
    ends.of[number || '_mean'].low AS mean_low,
    ends.of[number || '_mean'].high AS mean_high,
    round(round(spread, 12), 6) AS spread,
    ends.of[number || '_spread'].low AS spread_low,
    ends.of[number || '_spread'].high AS spread_high,
    round(round(reach, 12), 6) AS "range",
    ends.of[number || '_range'].low AS range_low,
    ends.of[number || '_range'].high AS range_high,
    round(round(w / nullif(round(variance, 12), 0), 12), 6) AS share_repeats,
    ends.of[number || '_share_repeats'].low AS share_repeats_low,
    ends.of[number || '_share_repeats'].high AS share_repeats_high
FROM parted
LEFT JOIN ends USING (date, app, generator)
ORDER BY app, generator, number
