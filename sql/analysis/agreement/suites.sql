-- grain: one version of one suite that graders have been run over
-- inputs: metaeval, judges
SELECT
    m.suite_version AS version,
    any_value(m.suite) AS name,
    count(DISTINCT m.case_id) AS n,
    list(DISTINCT m.judge_version ORDER BY m.judge_version) AS graders,
    list(DISTINCT coalesce(j.name, m.judge_version) ORDER BY coalesce(j.name, m.judge_version)) AS grader_names
FROM metaeval AS m
LEFT JOIN judges AS j USING (judge_version)
GROUP BY m.suite_version
ORDER BY name, version
