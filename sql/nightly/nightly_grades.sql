-- grain: one of the six grades of one night of one app and generator under one recipe that names a grader
-- inputs: trace_scores of one recipe and day, grades of its grader and extractor, intervals (number, low and high by
--   date, app and generator)
-- parameters: $grader_version
-- Grades that are N/A, unparsable, failed or missing enter no mean and are counted separately
-- (docs/methods.md#grades-of-a-grounded-answer).
-- Intervals: 95% over questions; none below two questions (docs/methods.md#noise-and-confidence).
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
        $grader_version AS grader_version,
        scale.grade,
        count(*) AS n,
        count(*) FILTER (g.status = 'scored') AS n_scored,
        count(*) FILTER (g.status = 'na') AS n_na,
        count(*) FILTER (g.status = 'unparsable') AS n_unparsable,
        count(*) FILTER (g.status = 'failed') AS n_failed,
        count(*) FILTER (g.status IS NULL) AS n_ungraded,
        rounded(avg(g.value)) AS grade_mean
    FROM trace_scores AS t
    CROSS JOIN scale
    LEFT JOIN grades AS g ON (g.date, g.trace_id, g.grade) = (t.date, t.trace_id, scale.grade)
    GROUP BY t.recipe, t.date, t.app, t.generator, t.judge_version, scale.grade
)
SELECT night.*, ends[grade].low AS grade_low, ends[grade].high AS grade_high
FROM night
LEFT JOIN ends_of('intervals') USING (date, app, generator)
ORDER BY app, generator, grade
