-- grain: one chunk of one trace, in the order it was given to the generator
-- inputs: traces
SELECT
    date,
    trace_id,
    app,
    generator,
    unnest(range(len(chunks))) AS position,
    unnest(chunks, recursive := TRUE)
FROM traces
