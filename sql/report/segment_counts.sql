-- Grain: one app and generator of the night: how many segments each pass found true.
-- Inputs: nightly_citations. Parameters: $recipe, $night.
SELECT
    app,
    generator,
    segments_total AS total,
    segments_cited AS cited,
    segments_cited_judged AS cited_judged,
    segments_cited_true AS cited_true,
    segments_total - segments_cited AS uncited,
    segments_judged - segments_cited_judged AS uncited_judged,
    segments_true - segments_cited_true AS uncited_true,
    segments_dangling AS dangling,
    segments_unjudged AS unjudged,
    segments_abstained AS abstained
FROM nightly_citations
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator
