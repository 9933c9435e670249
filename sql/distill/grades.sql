-- grain: one grade that one grader gave to one trace, of the wanted applications, in the order of day and trace
-- inputs: grades of the grader, traces, redactions, reviewed_grades (views/reviewed_grades.sql)
-- parameters: $apps (empty for all)
-- docs/methods.md#judging-the-judges. Derived grades are left out, since they follow from others. `request_key` is a
-- hash of the grader's input. `reason` is why a grade can't be an example for another grader; null for examples:
--   text_redacted        the trace's text was removed or has to be removed
--   failed, unparsable   there is no grade
--   refuted              people gave another grade to this answer, in this or another trace
WITH given AS (
    SELECT
        grades.date,
        grades.trace_id,
        grades.extractor_version,
        grades.grade,
        grades.status,
        grades.value,
        grades.explanation,
        traces.text_redacted_at IS NOT NULL OR grades.trace_id IN (SELECT trace_id FROM redactions) AS redacted,
        md5(normalized(traces.question)) AS question_id,
        traces.reference_answer IS NOT NULL AS referenced,
        md5(
            to_json({
                'question': traces.question,
                'answer': traces.answer,
                'chunks': list_transform(traces.chunks, lambda c: {'id': c.chunk_id, 'text': c.text}),
                'citations': traces.citations,
                'reference': traces.reference_answer,
                'extractor': grades.extractor_version
            })
        ) AS request_key,
        grades.status IN ('scored', 'na')
        AND reviewed_grades.outcome IN ('graded', 'na')
        AND reviewed_grades.value IS DISTINCT FROM grades.value AS refuted
    FROM grades
    INNER JOIN traces ON traces.trace_id = grades.trace_id AND traces.date = grades.date
    LEFT JOIN reviewed_grades ON reviewed_grades.trace_id = grades.trace_id AND reviewed_grades.grade = grades.grade
    WHERE
        grades.grade IN ('answer_relevancy', 'completeness', 'faithfulness', 'usefulness')
        AND (len($apps::VARCHAR[]) = 0 OR list_contains($apps::VARCHAR[], traces.app))
)
SELECT
    CASE
        WHEN redacted THEN 'text_redacted'
        WHEN status IN ('failed', 'unparsable') THEN status
        WHEN bool_or(refuted) OVER (PARTITION BY request_key, grade) THEN 'refuted'
    END AS reason,
    given.* EXCLUDE (redacted, refuted)
FROM given
ORDER BY date, trace_id, grade, extractor_version
