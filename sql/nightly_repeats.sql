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
-- Most questions are asked once: they are counted, and only the repeated ones are taken further.
WITH question AS MATERIALIZED (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        citation_status IS NOT NULL AS cites,
        count(*) AS n,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'scored') AS n_scored,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'na') AS n_na,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'unjudged') AS n_unjudged,
        count(*) FILTER (coalesce(citation_status, groundedness_status) = 'abstained') AS n_abstained,
        {
            'varied': count(groundedness_score) > 1,
            'mean': avg(groundedness_score),
            'variance': var_samp(groundedness_score),
            'reach': max(groundedness_score) - min(groundedness_score)
        } AS groundedness,
        {
            'varied': count(faithfulness) > 1,
            'mean': avg(faithfulness),
            'variance': var_samp(faithfulness),
            'reach': max(faithfulness) - min(faithfulness)
        } AS faithfulness,
        {
            'varied': count(citation_groundedness) > 1,
            'mean': avg(citation_groundedness),
            'variance': var_samp(citation_groundedness),
            'reach': max(citation_groundedness) - min(citation_groundedness)
        } AS citation_groundedness
    FROM trace_scores
    GROUP BY recipe, date, app, generator, judge_version, cites, coalesce(question_id, trace_id) -- gone with its text
),
asked AS (
    SELECT
        recipe,
        date,
        app,
        generator,
        judge_version,
        unnest(if(cites, ['citation_groundedness'], ['groundedness', 'faithfulness'])) AS number,
        count(*) AS questions
    FROM question
    GROUP BY recipe, date, app, generator, judge_version, cites
),
repeated AS (
    SELECT recipe, date, app, generator, judge_version, n, n_scored, n_na, n_unjudged, n_abstained, number, score.*
    FROM (
        UNPIVOT (FROM question WHERE n > 1)
        ON groundedness, faithfulness, citation_groundedness INTO NAME number VALUE score
    )
    WHERE cites = (number = 'citation_groundedness')
),
placed AS (
    SELECT
        *,
        sum(n_scored * mean) FILTER (varied) OVER night / sum(n_scored) FILTER (varied) OVER night AS grand
    FROM repeated
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
    FROM asked
    LEFT JOIN placed USING (recipe, date, app, generator, judge_version, number)
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
