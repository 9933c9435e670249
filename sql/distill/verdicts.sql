-- grain: one pair that one judge gave a verdict on, of the wanted applications, in the order of day, trace and claim
-- inputs: pairs, recipes, verdicts of the judge, traces, redactions, reviewed_claims (views/reviewed_claims.sql)
-- parameters: $judge_version, $apps (empty for all), $min_confidence
-- docs/methods.md#judging-the-judges. `reason` is why a pair can't be an example for another judge; null for examples:
--   text_redacted   the trace's text was removed or has to be removed
--   failed          there is no label
--   abstained       the judge abstained
--   low_confidence  the label's confidence is below $min_confidence, or missing
--   refuted         people disagree with the result of the pair's claim, or the pair finds more support in a part of
-- the
--                   evidence than people found in all of it
--   repeated        an earlier pair with the same request is an example
-- A request that is refuted in one trace is refuted in all traces with the same passages and claim.
WITH verdict AS (
    SELECT request_key, label, p_supported, p_contradicted, coalesce(passages, []) AS passages, explanation
    FROM verdicts
    WHERE sample = 0
    QUALIFY row_number() OVER (PARTITION BY request_key ORDER BY label IS NULL, created_at) = 1
),
pair AS (
    SELECT
        pairs.recipe,
        recipes.extractor_version,
        pairs.date,
        pairs.trace_id,
        pairs.claim_id,
        md5(normalized(traces.question)) AS question_id,
        pairs.request_key,
        pairs.evidence,
        verdict.* EXCLUDE (request_key),
        traces.text_redacted_at IS NOT NULL OR pairs.trace_id IN (SELECT trace_id FROM redactions) AS redacted,
        -- As in claim_results.sql.
        CASE verdict.label
            WHEN 'supported' THEN verdict.p_supported
            WHEN 'contradicted' THEN verdict.p_contradicted
            ELSE if(
                verdict.p_supported IS NULL, NULL,
                greatest(0, 1 - verdict.p_supported - coalesce(verdict.p_contradicted, 0))
            )
        END AS confidence,
        coalesce(
            reviewed_claims.judge <> reviewed_claims.people
            OR reviewed_claims.judge_misused <> reviewed_claims.people_misused
            OR (verdict.label = 'supported' AND reviewed_claims.people <> 'supported')
            OR (verdict.label = 'partially_supported' AND reviewed_claims.people IN ('unsupported', 'contradicted'))
            OR (verdict.label = 'contradicted' AND reviewed_claims.people <> 'contradicted'),
            false
        ) AS refuted
    FROM pairs
    INNER JOIN recipes USING (recipe)
    INNER JOIN traces ON traces.trace_id = pairs.trace_id AND traces.date = pairs.date
    INNER JOIN verdict USING (request_key)
    LEFT JOIN reviewed_claims
        ON reviewed_claims.recipe = pairs.recipe AND reviewed_claims.claim_id = pairs.claim_id
    WHERE
        coalesce(recipes.judge_versions[coalesce(pairs.stage, 1)], recipes.judge_version) = $judge_version
        AND (len($apps::VARCHAR[]) = 0 OR list_contains($apps::VARCHAR[], traces.app))
),
excluded AS (
    SELECT
        *,
        CASE
            WHEN redacted THEN 'text_redacted'
            WHEN label IS NULL THEN 'failed'
            WHEN label = 'abstained' THEN 'abstained'
            WHEN $min_confidence > 0 AND coalesce(confidence, 0) < $min_confidence THEN 'low_confidence'
            WHEN bool_or(refuted) OVER (PARTITION BY request_key) THEN 'refuted'
        END AS why
    FROM pair
),
placed AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY request_key, why ORDER BY date, trace_id, claim_id, recipe, evidence
        ) AS place
    FROM excluded
)
SELECT
    coalesce(why, CASE WHEN place > 1 THEN 'repeated' END) AS reason,
    recipe,
    extractor_version,
    date,
    trace_id,
    claim_id,
    question_id,
    request_key,
    label,
    round(confidence, 6) AS confidence,
    len(evidence) AS shown,
    passages,
    CASE WHEN reason IS NULL THEN evidence END AS evidence,
    CASE WHEN reason IS NULL THEN explanation END AS explanation
FROM placed
ORDER BY date, trace_id, claim_id, request_key, place
