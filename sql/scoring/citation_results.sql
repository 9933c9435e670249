-- grain: one claim under one recipe of method `citations`
-- inputs: traces, claims, claim_results (of the pairs of each claim, see claim_results.sql), for one part
-- docs/methods.md#citation-groundedness-two-passes. `stage` is the pass: 1 for claims with references, 2 for the
-- others. A claim without a pair is
-- - N/A if the trace has no chunks or the answer has no references,
-- - unsupported in the first pass, since all its references dangle,
-- - unjudged in the second pass while a verdict of the first pass on its answer is missing, otherwise unsupported: the
--   first pass found nothing true that could support it.
WITH answer AS (
    SELECT
        claims.trace_id,
        bool_or(len(claims.cited_chunk_ids) + len(claims.dangling_citations) > 0) AS has_references,
        bool_or(len(claims.cited_chunk_ids) > 0 AND claim_results.status = 'unjudged') AS waits
    FROM claims
    JOIN claim_results USING (claim_id)
    GROUP BY claims.trace_id
),
segment AS (
    SELECT
        claim_results.*,
        claims.ordinal,
        len(claims.cited_chunk_ids) + len(claims.dangling_citations) > 0 AS refers,
        len(traces.chunks) > 0 AND answer.has_references AS applies,
        CASE
            WHEN claim_results.n_pairs > 0 OR claim_results.status = 'abstained' THEN claim_results.status
            WHEN len(traces.chunks) = 0 OR NOT answer.has_references THEN 'na'
            WHEN NOT refers AND answer.waits THEN 'unjudged'
            ELSE 'judged'
        END AS outcome
    FROM claim_results
    JOIN claims USING (claim_id)
    JOIN traces ON traces.trace_id = claims.trace_id
    JOIN answer ON answer.trace_id = claims.trace_id
)
SELECT
    * EXCLUDE (ordinal, refers, applies, outcome) REPLACE (
        outcome AS status,
        CASE WHEN n_pairs > 0 THEN label WHEN outcome = 'judged' THEN 'unsupported' END AS label,
        CASE WHEN applies THEN if(refers, 1, 2) END AS stage,
        CASE WHEN applies THEN if(refers, 1, 2) END AS stage_asked,
        -- In the second pass, the deciding evidence is claims, not chunks.
        CASE WHEN refers THEN deciding_chunk_id END AS deciding_chunk_id,
        CASE WHEN refers THEN deciding_chunk_ids ELSE [] END AS deciding_chunk_ids,
        coalesce(misused, TRUE) OR outcome IN ('unjudged', 'abstained') AS needs_review
    )
FROM segment
ORDER BY trace_id, ordinal
