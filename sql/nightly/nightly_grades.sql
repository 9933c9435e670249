-- grain: one of the six grades of one night of one app and generator under one recipe that names a grader
-- inputs: trace_scores of one recipe and day, grades of its grader and extractor, intervals (number, low and high by
-- date, app and generator). Parameters: $grader_version
-- What is N/A, unparsable, failed or not graded enters no mean; each is counted by itself (METHODS section 9).
-- Numbers are rounded twice: the last of 6 decimals must not depend on the order in which rows were added up, even
-- where it falls on a tie.
-- Intervals: 95% over questions; none below two questions (METHODS section 11).
WITH scale AS (
    SELECT
        unnest([
            'answer_relevancy', 'completeness', 'faithfulness', 'usefulness', 'positive_acceptance',
            'negative_rejection'
        ]) AS grade
),
night AS (
    SELECT
        t.recipe,
        t.date,
        t.app,
        t.generator,
        t.judge_version,
        scale.grade,
        count(*) AS n,
        count(*) FILTER (g.status = 'scored') AS n_scored,
        count(*) FILTER (g.status = 'na') AS n_na,
        count(*) FILTER (g.status = 'unparsable') AS n_unparsable,
        count(*) FILTER (g.status = 'failed') AS n_failed,
        count(*) FILTER (g.status IS NULL) AS n_ungraded,
        avg(g.value) AS grade_avg
    FROM trace_scores AS t
    CROSS JOIN scale
    LEFT JOIN grades AS g ON (g.date, g.trace_id, g.grade) = (t.date, t.trace_id, scale.grade)
    GROUP BY t.recipe, t.date, t.app, t.generator, t.judge_version, scale.grade
)
SELECT
    recipe,
    night.date,
    night.app,
    night.generator,
    judge_version,
    $grader_version AS grader_version,
    night.grade,
    n,
    n_scored,
    n_na,
    n_unparsable,
    n_failed,
    n_ungraded,
    round(round(grade_avg, 12), 6) AS grade_mean,
    i.low AS grade_low,
    i.high AS grade_high
FROM night
LEFT JOIN intervals AS i
    ON i.number = night.grade
    AND (i.date, i.app, i.generator) = (night.date, night.app, night.generator)
ORDER BY night.app, night.generator, night.grade
