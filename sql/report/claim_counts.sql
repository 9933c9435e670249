-- Grain: one app and generator of the night: how many claims got which label, and how many got none; their citations.
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
    misused_share_low AS misused_low,
    misused_share_high AS misused_high,
    claims_to_check AS to_check,
    claims_unread AS unread,
    citation_recall_mean AS recall,
    citation_recall_low AS recall_low,
    citation_recall_high AS recall_high,
    citation_precision_mean AS precision,
    citation_precision_low AS precision_low,
    citation_precision_high AS precision_high,
    n_no_answer,
    n_refusal,
    claims_abstained AS abstained,
    claims_unjudged AS unjudged,
    claims_total - claims_judged - claims_abstained - claims_unjudged AS na,
    citations_dangling AS dangling
FROM nightly_groundedness
WHERE recipe = $recipe AND date = $night
ORDER BY app, generator
