-- grain: one failure pattern that claims of one question show, of one night of one app and generator under one recipe
-- inputs: trace_scores and claim_results of one recipe and day
-- docs/methods.md#failure-patterns. Few claims show a pattern, so only these are joined to their traces.
-- In any order.
SELECT
    date,
    app,
    generator,
    judge_version,
    coalesce(question_id, trace_id) AS question, -- null if the text was removed
    pattern AS name,
    count(*) FILTER (judged) AS n,
    count(*) FILTER (NOT judged) AS n_not_judged
FROM (
    SELECT trace_id, label IS NOT NULL AS judged, unnest(patterns) AS pattern
    FROM claim_results
    WHERE len(patterns) > 0
)
JOIN (SELECT date, app, generator, judge_version, question_id, trace_id FROM trace_scores) USING (trace_id)
GROUP BY ALL
