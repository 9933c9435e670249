-- grain: one source that is right for or cited in annotated traces of one question of one night, app and generator; a
--   null source stands for all answers to the question
-- inputs: trace_grace of one recipe and day, traces of the day
-- docs/methods.md#grace-citations-as-classification. If one of a trace's right sources is cited, the others don't
-- count as missed. For all answers (null source), support is their number, a true positive is a hit and a false
-- negative a miss. Questions that differ only in case and white space are equal, as in trace_scores, which may not
-- exist yet.
WITH trace AS (
    SELECT
        g.recipe,
        g.date,
        g.app,
        g.generator,
        g.gold,
        g.cited,
        g.outcome = 'hit' AS hit,
        CASE WHEN t.text_redacted_at IS NULL THEN 'question ' || normalized(t.question) END AS same_question,
        coalesce(same_question, 'trace ' || g.trace_id) AS question
    FROM trace_grace AS g
    LEFT JOIN traces AS t USING (date, trace_id)
    WHERE g.status = 'scored'
),
right_source AS (
    SELECT *, unnest(gold) AS source
    FROM trace
),
cited_source AS (
    SELECT *, unnest(cited) AS source
    FROM trace
),
counted AS (
    SELECT *, 1 AS support, list_contains(cited, source) AS tp, FALSE AS fp, NOT hit AS fn
    FROM right_source
    UNION ALL
    SELECT *, 0, FALSE, TRUE, FALSE
    FROM cited_source
    WHERE NOT list_contains(gold, source)
    UNION ALL
    SELECT *, NULL, 1, hit, FALSE, NOT hit
    FROM trace
)
SELECT
    recipe,
    date,
    app,
    generator,
    dense_rank() OVER (PARTITION BY recipe, date, app, generator ORDER BY question) AS question,
    source,
    sum(support)::BIGINT AS support,
    count(*) FILTER (tp) AS true_positives,
    count(*) FILTER (fp) AS false_positives,
    count(*) FILTER (fn) AS false_negatives
FROM counted
GROUP BY recipe, date, app, generator, counted.question, source
ORDER BY app, generator, question, source
