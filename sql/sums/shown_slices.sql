-- grain: one value of one slice, of the traces of one question of one night of one app and generator under one recipe
-- inputs: trace_scores and claim_results of one recipe and day, traces of the same day
-- parameters: $most_values (per slice and app), $most_tags (per app)
-- docs/methods.md#slices. A slice is `language` (of claims; `und` if undetermined), `prompt_version`, or `tags.` and
-- the name of a tag. `name` is slice and value as a JSON list. Only the $most_values most frequent values of an app are
-- kept; the others are combined as null. If there are more than $most_tags tags, those of most traces are kept, then
-- those with fewest values. In any order.
WITH score AS (
    SELECT
        date,
        app,
        generator,
        judge_version,
        trace_id,
        coalesce(question_id, trace_id) AS question, -- null if the text was removed
        prompt_version,
        coalesce(citation_status, groundedness_status) AS status,
        coalesce(citation_groundedness, groundedness_score) AS score,
        claims_total,
        claims_judged,
        claims_supported,
        claims_misused,
        claims_unread
    FROM trace_scores
),
own AS (
    SELECT trace_id, 'prompt_version' AS slice, prompt_version AS value FROM score WHERE prompt_version IS NOT NULL
    UNION ALL
    SELECT trace_id, 'tags.' || tag.key, tag.value
    FROM (SELECT trace_id, unnest(map_entries(tags)) AS tag FROM traces)
),
sliced AS MATERIALIZED (
    SELECT
        own.trace_id,
        slice,
        value,
        claims_total AS n,
        claims_judged AS n_judged,
        claims_supported AS n_supported,
        claims_misused AS n_misused,
        claims_unread AS n_unread,
        date,
        app,
        generator,
        judge_version,
        question,
        status,
        score
    FROM own
    JOIN score USING (trace_id)
    UNION ALL
    SELECT language.*, date, app, generator, judge_version, question, status, score
    FROM (
        SELECT
            trace_id,
            'language',
            coalesce(language, 'und') AS value,
            count(*),
            count(label),
            count(*) FILTER (label = 'supported'),
            count(*) FILTER (misused),
            count(*) FILTER (abstained_for = 'language')
        FROM claim_results
        GROUP BY ALL
    ) AS language
    JOIN score USING (trace_id)
),
frequent AS (
    SELECT
        app,
        slice,
        value,
        row_number() OVER (PARTITION BY app, slice ORDER BY count(*) DESC, value) <= $most_values AS named,
        sum(count(*)) OVER (PARTITION BY app, slice) AS traces,
        count(*) OVER (PARTITION BY app, slice) AS values
    FROM sliced
    GROUP BY app, slice, value
),
kept AS (
    SELECT app, slice, value, named, to_json([slice, if(named, value, NULL)])::VARCHAR AS name
    FROM frequent
    QUALIFY NOT starts_with(slice, 'tags.')
        OR dense_rank() OVER (
            PARTITION BY app, starts_with(slice, 'tags.') ORDER BY traces DESC, values, slice
        ) <= $most_tags
),
counted AS (
    SELECT trace_id, date, app, generator, judge_version, question, name, status, score, COLUMNS('^n(_.+)?$')
    FROM sliced
    JOIN (FROM kept WHERE named) USING (app, slice, value)
    UNION ALL -- a trace with claims in several rare languages has one row of "others"
    SELECT trace_id, date, app, generator, judge_version, question, name, status, score, sum(COLUMNS('^n(_.+)?$'))
    FROM sliced
    JOIN (FROM kept WHERE NOT named) USING (app, slice, value)
    GROUP BY ALL
)
SELECT
    date,
    app,
    generator,
    judge_version,
    question,
    name,
    sum(n)::BIGINT AS n,
    sum(n_judged)::BIGINT AS n_judged,
    sum(n_supported)::BIGINT AS n_supported,
    sum(n_misused)::BIGINT AS n_misused,
    sum(n_unread)::BIGINT AS n_unread,
    count(*) AS traces,
    count(*) FILTER (status = 'scored') AS scored,
    count(*) FILTER (status = 'na') AS na,
    count(*) FILTER (status = 'unjudged') AS unjudged,
    count(*) FILTER (status = 'abstained') AS abstained,
    sum(score) AS score_total
FROM counted
GROUP BY ALL
