-- grain: one grade of one drawn answer that people should give. Counts of what was left out are in every row; without
--   grades, they are in a single row.
-- inputs: trace_scores, traces, current_recipes, recipes, claims, reviewed_grades
-- parameters: $grades, $count, $reviewers, $seed; $recipe_name or $recipe; $reviewer, $app, $first, $last (null: all)
-- docs/methods.md#peoples-labels. Answers are in the random order of `candidates.sql`, including answers without
-- claims. That query selects all claims of an answer that is drawn here. Grades with enough reviews are left out, like
-- claims there.
WITH answer AS (
    SELECT s.date, s.trace_id, r.extractor_version, md5($seed || ' ' || s.trace_id) AS place
    FROM trace_scores AS s
    JOIN traces AS t ON t.date = s.date AND t.trace_id = s.trace_id
    JOIN recipes AS r ON r.recipe = s.recipe
    LEFT JOIN current_recipes AS c
        ON c.date = s.date AND c.app = s.app AND c.recipe = s.recipe AND c.recipe_name = $recipe_name::VARCHAR
    WHERE
        coalesce(s.recipe = $recipe::VARCHAR, c.recipe IS NOT NULL)
        AND t.text_redacted_at IS NULL
        AND t.answer <> ''
        AND coalesce(s.app = $app::VARCHAR, TRUE)
        AND coalesce(s.date >= $first::DATE, TRUE)
        AND coalesce(s.date <= $last::DATE, TRUE)
    ORDER BY place, s.date, s.trace_id
    LIMIT $count
),
cited AS (
    SELECT date, trace_id, extractor_version, list_distinct(flatten(list(cited_chunk_ids))) AS cited_chunk_ids
    FROM claims
    GROUP BY date, trace_id, extractor_version
),
wanted AS (
    SELECT
        answer.*,
        grade.name AS grade,
        grade.position,
        coalesce(cited.cited_chunk_ids, []) AS cited_chunk_ids,
        coalesce(v.random, FALSE)
        AND (
            v.adjudicated
            OR v.n_reviewers >= $reviewers
            OR coalesce(list_contains(list_transform(v.votes, lambda x: x.reviewer), $reviewer::VARCHAR), FALSE)
        ) AS enough
    FROM answer
    CROSS JOIN (SELECT unnest($grades) AS name, unnest(range(len($grades))) AS position) AS grade
    LEFT JOIN cited USING (date, trace_id, extractor_version)
    LEFT JOIN reviewed_grades AS v ON v.trace_id = answer.trace_id AND v.grade = grade.name
)
SELECT (SELECT count(*) FROM wanted WHERE enough) AS n_enough, w.* EXCLUDE (enough, extractor_version, place, position)
FROM (SELECT 1)
LEFT JOIN (SELECT * FROM wanted WHERE NOT enough) AS w ON TRUE
ORDER BY w.place, w.date, w.trace_id, w.position
