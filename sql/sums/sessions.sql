-- grain: one session of one night of one app and generator: its traces of that day
-- inputs: trace_scores of one recipe and day
-- docs/methods.md#scores-of-one-trace. A session with an unjudged trace is unjudged, because that trace might change the
-- result; otherwise it is scored if one of its traces is. Traces without a session are left out.
SELECT
    recipe,
    date,
    app,
    generator,
    judge_version,
    count(*) AS traces,
    CASE
        WHEN bool_or(groundedness_status = 'unjudged') THEN 'unjudged'
        WHEN bool_or(groundedness_status = 'scored') THEN 'scored'
        WHEN bool_or(groundedness_status = 'abstained') THEN 'abstained'
        ELSE 'na'
    END AS status,
    (bool_or(claims_unsupported + claims_contradicted > 0))::DOUBLE AS ungrounded,
    (bool_or(claims_misused > 0))::DOUBLE AS misused
FROM trace_scores
WHERE session_id IS NOT NULL
GROUP BY recipe, date, app, generator, judge_version, session_id
ORDER BY app, generator, traces, status, ungrounded, misused
