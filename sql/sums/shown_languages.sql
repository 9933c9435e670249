-- grain: one language of the claims of one question of one night of one app and generator under one recipe
-- inputs: trace_scores and claim_results of one recipe and day
-- docs/methods.md#claims. `und` is an undetermined language.
-- In any order.
SELECT
    date,
    app,
    generator,
    judge_version,
    coalesce(question_id, trace_id) AS question, -- gone with its text
    name,
    count(*) AS n,
    count(label) AS n_judged,
    count(*) FILTER (label = 'supported') AS n_supported,
    count(*) FILTER (abstained_for = 'language') AS n_unread
FROM (SELECT trace_id, label, abstained_for, coalesce(language, 'und') AS name FROM claim_results)
JOIN (SELECT date, app, generator, judge_version, question_id, trace_id FROM trace_scores) USING (trace_id)
GROUP BY ALL
