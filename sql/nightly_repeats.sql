-- grain: one number of one night of one app and generator under one recipe: groundedness and faithfulness, or, of recipes
-- of method `citations`, citation groundedness
-- inputs: trace_scores of one recipe and day
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- METHODS section 4. A question is repeated where several traces have its question_id. The k repeated questions with at
-- least two scored traces (n_i each, N together) enter: the mean of their means, of their sample standard deviations
-- (spread), and of highest − lowest (range). Share of the variance that comes from repeats = W / (W + B), one-way
-- random effects by the ANOVA estimators:
--   W = Σ (n_i − 1)·s_i² / (N − k)                        variance within a question
--   M = Σ n_i·(mean_i − mean)² / (k − 1),  n0 = (N − Σ n_i² / N) / (k − 1)
--   B = (M − W) / n0, at least 0                          variance between questions
-- It is null below two such questions, and where nothing varies at all.
WITH score AS (
    SELECT *, 'groundedness' AS number, groundedness_status AS status, groundedness_score AS score
    FROM trace_scores
    WHERE citation_status IS NULL
    UNION ALL
    SELECT *, 'faithfulness' AS number, groundedness_status AS status, faithfulness AS score
    FROM trace_scores
    WHERE citation_status IS NULL
    UNION ALL
    SELECT *, 'citation_groundedness' AS number, citation_status AS status, citation_groundedness AS score
    FROM trace_scores
    WHERE citation_status IS NOT NULL
),
question AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        number,
        count(*) AS n,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(*) FILTER (status = 'na') AS n_na,
        count(*) FILTER (status = 'unjudged') AS n_unjudged,
        count(*) FILTER (status = 'abstained') AS n_abstained,
        count(*) > 1 AS repeated,
        count(score) > 1 AS varied,
        avg(score) AS mean,
        var_samp(score) AS variance,
        max(score) - min(score) AS reach
    FROM score
    GROUP BY recipe, date, app, generator, judge_version, number, question_id
),
placed AS (
    SELECT
        *,
        sum(n_scored * mean) FILTER (varied) OVER night / sum(n_scored) FILTER (varied) OVER night AS grand
    FROM question
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
        count(*) AS questions,
        count(*) FILTER (repeated) AS questions_repeated,
        coalesce(sum(n) FILTER (repeated), 0)::BIGINT AS n,
        coalesce(sum(n_scored) FILTER (repeated), 0)::BIGINT AS n_scored,
        coalesce(sum(n_na) FILTER (repeated), 0)::BIGINT AS n_na,
        coalesce(sum(n_unjudged) FILTER (repeated), 0)::BIGINT AS n_unjudged,
        coalesce(sum(n_abstained) FILTER (repeated), 0)::BIGINT AS n_abstained,
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
    round(round(spread, 12), 6) AS spread,
    round(round(reach, 12), 6) AS "range",
    round(round(w / nullif(round(variance, 12), 0), 12), 6) AS share_repeats
FROM parted
ORDER BY app, generator, number
