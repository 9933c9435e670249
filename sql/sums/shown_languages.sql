-- grain: one language of the claims of one question of one night of one app and generator under one recipe
-- inputs: trace_scores and claim_results of one recipe and day
-- docs/methods.md#claims. `und` is an undetermined language.
SELECT
    date,
    app,
    generator,
    judge_version,
    coalesce(question_id, trace_id) AS question, -- gone with its text
    name,
    sum(claims) AS n,
    sum(judged) AS n_judged,
    sum(supported) AS n_supported,
    sum(unread) AS n_unread
FROM (
    SELECT
        trace_id,
        coalesce(language, 'und') AS name,
        count(*) AS claims,
        count(label) AS judged,
        count(*) FILTER (label = 'supported') AS supported,
        count(*) FILTER (abstained_for = 'language') AS unread
    FROM claim_results
    GROUP BY trace_id, name
)
JOIN (SELECT date, app, generator, judge_version, question_id, trace_id FROM trace_scores) USING (trace_id)
GROUP BY ALL
ORDER BY app, generator, question, name
