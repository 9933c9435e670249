-- grain: one trace under one recipe
-- inputs: traces, claims, annotations (right sources of the traces' questions, from a file), for one part
-- parameters: $recipe, $grace_source (`chunk` or `doc`: which id is a source)
-- docs/methods.md#grace-citations-as-classification. Citing any right source is a hit. Otherwise the outcome is
-- the first that applies: not_retrieved (no right source among the chunks), cited_nothing (no references),
-- cited_another (only wrong chunks are cited), retrieved_not_cited (all references dangle).
WITH cited AS (
    SELECT
        trace_id,
        flatten(list(cited_chunk_ids)) AS chunk_ids,
        sum(len(dangling_citations)) > 0 AS dangling
    FROM claims
    GROUP BY trace_id
),
joined AS (
    SELECT
        traces.date,
        traces.trace_id,
        traces.app,
        traces.generator,
        annotations.trace_id IS NOT NULL AS by_file,
        CASE WHEN annotations.trace_id IS NOT NULL THEN annotations.gold_ids ELSE traces.gold_chunk_ids END AS gold_ids,
        list_transform(
            traces.chunks,
            lambda c: {
                'chunk_id': c.chunk_id,
                'source': CASE WHEN $grace_source = 'doc' THEN coalesce(c.doc_id, c.chunk_id) ELSE c.chunk_id END
            }
        ) AS chunks,
        coalesce(cited.chunk_ids, []) AS cited_chunk_ids,
        coalesce(cited.dangling, FALSE) AS dangling
    FROM traces
    LEFT JOIN annotations USING (trace_id)
    LEFT JOIN cited USING (trace_id)
),
named AS (
    SELECT
        *,
        -- Traces name chunks, files name sources. The document of a chunk that was not retrieved is unknown, so its own
        -- id is used.
        CASE
            WHEN by_file THEN gold_ids
            ELSE list_transform(
                gold_ids,
                lambda g: coalesce(list_filter(chunks, lambda c: c.chunk_id = g)[1].source, g)
            )
        END AS right_ids,
        list_transform(
            list_filter(chunks, lambda c: list_contains(cited_chunk_ids, c.chunk_id)), lambda c: c.source
        ) AS cited_ids
    FROM joined
),
source AS (
    SELECT
        *,
        len(right_ids) > 0 AS annotated,
        list_filter(right_ids, lambda s, i: list_position(right_ids, s) = i) AS gold,
        list_filter(cited_ids, lambda s, i: list_position(cited_ids, s) = i) AS cited,
        list_transform(
            list_filter(chunks, lambda c: list_contains(right_ids, c.source)), lambda c: c.chunk_id
        ) AS gold_chunk_ids
    FROM named
)
SELECT
    $recipe AS recipe,
    date,
    trace_id,
    app,
    generator,
    CASE WHEN annotated THEN 'scored' ELSE 'na' END AS status,
    CASE WHEN gold IS NOT NULL THEN CASE WHEN by_file THEN 'file' ELSE 'trace' END END AS annotated_in,
    gold,
    coalesce(gold_chunk_ids, []) AS gold_chunk_ids,
    cited,
    CASE
        WHEN NOT coalesce(annotated, FALSE) THEN NULL
        WHEN list_has_any(gold, cited) THEN 'hit'
        WHEN len(gold_chunk_ids) = 0 THEN 'not_retrieved'
        WHEN len(cited) = 0 AND NOT dangling THEN 'cited_nothing'
        WHEN len(cited) > 0 THEN 'cited_another'
        ELSE 'retrieved_not_cited'
    END AS outcome
FROM source
ORDER BY trace_id
