-- grain: one grader version that has been run over a suite, with its number of cases
-- inputs: metaeval, judges
-- parameters: $suite (its version)
SELECT
    m.judge_version AS version,
    any_value(coalesce(j.name, m.judge_version)) AS name,
    count(DISTINCT m.case_id) AS n
FROM metaeval AS m
LEFT JOIN judges AS j USING (judge_version)
WHERE m.suite_version = $suite
GROUP BY m.judge_version
ORDER BY name, version
