-- grain: one trace with a reply to one question of `leadline ask`
-- inputs: traces, ask_replies of one version
SELECT
    t.date,
    t.trace_id,
    t.app,
    t.generator,
    coalesce(CASE WHEN t.text_redacted_at IS NULL THEN md5(normalized(t.question)) END, t.trace_id) AS question,
    r.status,
    r.value,
    r.failure,
    r.explanation
FROM traces AS t
INNER JOIN ask_replies AS r USING (date, trace_id)
ORDER BY t.date, t.trace_id
