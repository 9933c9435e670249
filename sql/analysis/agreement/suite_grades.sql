-- grain: one grade of one case of a suite by one grader version
-- inputs: metaeval
-- parameters: $grader, $suite (its version)
-- An outcome is `scored`, `na`, `unparsable` or `unjudged`; only the first has a value.
SELECT
    NULL::DATE AS date,
    case_id AS item,
    NULL::VARCHAR AS app,
    case_id AS question,
    grade,
    CASE
        WHEN outcome IN ('unparsable', 'unjudged') THEN outcome
        WHEN value IS NULL THEN 'na'
        ELSE 'scored'
    END AS outcome,
    value,
    TRUE AS drawn
FROM metaeval
WHERE judge_version = $grader AND suite_version = $suite
ORDER BY case_id, grade
