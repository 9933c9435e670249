-- Grain: one app and generator of the night: how many claims got which label, and how many got none.
-- Inputs: nightly_groundedness. Parameters: $recipe, $night.
SELECT
    app,
    generator,
    claims_total AS total,
    claims_judged AS judged,
    claims_supported AS supported,
    claims_partial AS partially_supported,
    claims_unsupported AS unsupported,
    claims_contradicted AS contradicted,
    claims_misused AS misused,
    claims_abstained AS abstained,
    claims_unjudged AS unjudged,
    claims_total - claims_judged - claims_abstained - claims_unjudged AS na,
    citations_dangling AS dangling
FROM nightly_groundedness
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator
