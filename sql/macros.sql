-- Macros for SQL over parts of the lake. Views and the report can't use them: the published warehouse has no macros.

-- A mean rounded to six decimals. The first rounding removes differences that depend on the order of summation, so that
-- the second rounding is deterministic even on a tie.
CREATE OR REPLACE TEMP MACRO rounded(x) AS round(round(x, 12), 6);

-- The 5%, 25%, 50%, 75% and 95% quantiles of a score.
CREATE OR REPLACE TEMP MACRO percentiles(x) AS
    list_transform(quantile_cont(x, [0.05, 0.25, 0.5, 0.75, 0.95]), lambda q: rounded(q));

-- How far the scores of one question's traces differ.
CREATE OR REPLACE TEMP MACRO variation(score) AS {
    'varied': count(score) > 1,
    'mean': avg(score),
    'variance': var_samp(score),
    'reach': max(score) - min(score)
};

-- A question in the form that is compared, without differences in case and white space.
CREATE OR REPLACE TEMP MACRO normalized(question) AS
    trim(regexp_replace(lower(nfc_normalize(question)), '\s+', ' ', 'g'));

-- Combines several verdicts on one claim into a label (docs/methods.md#labels). Support comes first. Without support, a
-- missing verdict makes the claim unjudged, since that verdict might have been supported.
CREATE OR REPLACE TEMP MACRO combined(label) AS
    CASE
        WHEN bool_or(label = 'supported') THEN 'supported'
        WHEN count(label) < count(*) THEN 'unjudged'
        WHEN bool_or(label = 'contradicted') THEN 'contradicted'
        WHEN bool_or(label = 'partially_supported') THEN 'partially_supported'
        WHEN bool_or(label = 'abstained') THEN 'abstained'
        ELSE 'unsupported'
    END;

-- Converts a relation (number, low and high by key) to a row per key with intervals by number: ends['misused'].low.
CREATE OR REPLACE TEMP MACRO ends_of(intervals) AS TABLE
    SELECT * EXCLUDE (number, low, high), map(list(number), list({'low': low, 'high': high})) AS ends
    FROM query_table(intervals)
    GROUP BY ALL;
