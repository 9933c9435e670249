-- Macros for the SQL that runs over parts of the lake. Views and the report run in the published warehouse, which has none.

-- Six decimals of a mean. The first rounding takes away what depends on the order in which rows were added up, so that
-- the second one is the same even on a tie.
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

-- A question as it is compared with others: case and spaces make no other question.
CREATE OR REPLACE TEMP MACRO normalized(question) AS
    trim(regexp_replace(lower(nfc_normalize(question)), '\s+', ' ', 'g'));

-- The label that several verdicts on one claim come to (docs/methods.md#labels): support counts first; without it, a
-- missing
-- verdict leaves the claim unjudged, since that one might have given support.
CREATE OR REPLACE TEMP MACRO combined(label) AS
    CASE
        WHEN bool_or(label = 'supported') THEN 'supported'
        WHEN count(label) < count(*) THEN 'unjudged'
        WHEN bool_or(label = 'contradicted') THEN 'contradicted'
        WHEN bool_or(label = 'partially_supported') THEN 'partially_supported'
        WHEN bool_or(label = 'abstained') THEN 'abstained'
        ELSE 'unsupported'
    END;

-- A row for each key of a relation (number, low and high by key): its intervals by number, such as ends['misused'].low.
CREATE OR REPLACE TEMP MACRO ends_of(intervals) AS TABLE
    SELECT * EXCLUDE (number, low, high), map(list(number), list({'low': low, 'high': high})) AS ends
    FROM query_table(intervals)
    GROUP BY ALL;
