-- grain: one claim of one part that is sent to the next judge of a cascade
-- inputs: claim_results (by the judges so far), pairs and verdict (of the last judge), for one part
-- parameters: $stage (of the last judge), $lo and $hi (the band of the next one)
-- A claim is sent if the last judge was uncertain or gave no label. A claim with a missing verdict (an outage) waits.
WITH waiting AS (
    SELECT DISTINCT claim_id
    FROM pairs
    ANTI JOIN verdict USING (request_key)
)
SELECT claim_id
FROM claim_results
ANTI JOIN waiting USING (claim_id)
WHERE
    stage_asked = $stage
    AND (
        stage < stage_asked
        OR status IN ('abstained', 'unjudged')
        OR (p_supported >= $lo AND p_supported < $hi)
    )
ORDER BY claim_id
