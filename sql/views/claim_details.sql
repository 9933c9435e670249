-- grain: one claim under one recipe, with its text, its trace's app and generator, and its deciding chunk's text
-- inputs: claim_results, claims, traces
SELECT
    r.*,
    c.ordinal,
    c.text,
    c.context,
    c.hypothesis,
    c.span_start,
    c.span_end,
    c.cited_chunk_ids,
    c.dangling_citations,
    t.app,
    t.generator,
    t.question,
    list_filter(t.chunks, lambda k: k.chunk_id = r.deciding_chunk_id)[1].text AS deciding_chunk_text
FROM claim_results AS r
JOIN claims AS c USING (date, claim_id)
JOIN traces AS t ON t.date = r.date AND t.trace_id = r.trace_id
