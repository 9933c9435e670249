-- grain: one question that occurs several times on one night of one app and generator, under one recipe
-- inputs: trace_scores, traces
SELECT
    s.recipe,
    s.date,
    s.app,
    s.generator,
    s.judge_version,
    s.question_id,
    min_by(t.question, s.trace_id) AS question,
    count(*) AS n,
    count(s.groundedness_score) AS n_scored,
    avg(s.groundedness_score) AS groundedness_mean,
    stddev_samp(s.groundedness_score) AS groundedness_spread,
    max(s.groundedness_score) - min(s.groundedness_score) AS groundedness_range,
    avg(s.faithfulness) AS faithfulness_mean,
    stddev_samp(s.faithfulness) AS faithfulness_spread,
    max(s.faithfulness) - min(s.faithfulness) AS faithfulness_range
FROM trace_scores AS s
JOIN traces AS t ON t.date = s.date AND t.trace_id = s.trace_id
WHERE s.question_id IS NOT NULL
GROUP BY s.recipe, s.date, s.app, s.generator, s.judge_version, s.question_id
HAVING count(*) > 1
