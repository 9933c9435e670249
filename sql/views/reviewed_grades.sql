-- grain: one grade of one trace that people gave
-- inputs: reviews
-- docs/methods.md#peoples-labels. Each reviewer's latest grade counts, and of several reviewers the most frequent
-- grade; N/A counts like any other grade. `outcome` is `graded`, `na` or `tied`; `value` is null unless it is `graded`.
-- The latest grade of an adjudicator overrides all others.
WITH vote AS (
    SELECT
        *,
        coalesce(adjudicated, false) AS final,
        bool_or(sampling IS NULL OR sampling = 'random') OVER (PARTITION BY trace_id, grade) AS drawn,
        final OR NOT bool_or(final) OVER (PARTITION BY trace_id, grade) AS decides
    FROM reviews
    WHERE grade IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, grade, final, CASE WHEN NOT final THEN reviewer END
        ORDER BY coalesce(reviewed_at, imported_at) DESC, review_id DESC
    ) = 1
),
tally AS (
    SELECT trace_id, grade, value, count(*) AS n, max(n) OVER (PARTITION BY trace_id, grade) AS most
    FROM vote
    WHERE decides
    GROUP BY trace_id, grade, value
),
winner AS (
    SELECT trace_id, grade, count(*) = 1 AS decided, CASE WHEN count(*) = 1 THEN max(value) END AS value
    FROM tally
    WHERE n = most
    GROUP BY trace_id, grade
),
by_grade AS (
    SELECT
        min(date) AS date,
        trace_id,
        grade,
        count(DISTINCT coalesce(reviewer, '')) AS n_reviewers, -- all reviewers without a name count as one
        bool_or(drawn) AS random,
        bool_or(final) AS adjudicated,
        NOT bool_or(final) AND count(DISTINCT coalesce(value, -1)) > 1 AS disputed,
        list(
            {'reviewer': reviewer, 'value': value, 'adjudicated': final} ORDER BY final, reviewer NULLS FIRST
        ) AS votes
    FROM vote
    GROUP BY trace_id, grade
)
SELECT
    by_grade.date,
    by_grade.trace_id,
    by_grade.grade,
    CASE WHEN NOT winner.decided THEN 'tied' WHEN winner.value IS NULL THEN 'na' ELSE 'graded' END AS outcome,
    winner.value,
    by_grade.n_reviewers,
    by_grade.random,
    by_grade.adjudicated,
    by_grade.disputed,
    by_grade.votes
FROM by_grade
INNER JOIN winner USING (trace_id, grade)
ORDER BY by_grade.date, by_grade.trace_id, by_grade.grade
