"""Tables of judging: claims, pairs, verdicts, relevance and grades."""

import pyarrow as pa

from tasks.core.schemas.columns import (
    CLAIM_ID,
    DATE,
    EVIDENCE,
    F64,
    I32,
    JUDGE_VERSION,
    RECIPE,
    STRINGS,
    TRACE_ID,
    TS,
    UNTEXTED,
    B,
    S,
    Table,
    col,
)

CLAIMS = Table(
    "claims",
    "one claim, or another piece, that one extractor version cut from an answer",
    pa.schema([
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("ordinal", I32, "Position among the pieces of the answer, from 0.", null=False),
        col("kind", S, "`claim`, or a kind that is neither judged nor scored: `heading`, `lead-in`, `greeting`, `pointer` (\"see [1]\"), `question`, `refusal`, `reasoning` (not part of the answer).", null=False),
        col("language", S, "ISO 639 code of its language; null if unknown."),
        col("text", S, "The claim: `answer[span_start:span_end]`, or a fact that a model wrote from it.", null=False),
        col("context", S, "Its context: lead-in and term of a list item, column header and row label of a table cell, the question of a \"yes\"; may be empty.", null=False),
        col("hypothesis", S, "The claim as the judge reads it: with its context, without references and markup.", null=False),
        col("span_start", I32, "First character in the answer, from 0; facts of one sentence share its span.", null=False),
        col("span_end", I32, "One past its last character.", null=False),
        col("cited_chunk_ids", STRINGS, "Chunks of the trace that the claim cites.", null=False),
        col("dangling_citations", STRINGS, "References to chunks that are not in the trace, as written.", null=False),
    ]),
    ("extractor_version", "date"),
    lost=f"{UNTEXTED}, and answers that a model split into facts (extractor `atomic`): it may split them differently",
)  # fmt: skip

PAIRS = Table(
    "pairs",
    "one claim with one body of evidence",
    pa.schema([
        RECIPE,
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("stage", I32, "Number of the recipe's judge, from 1; above 1 in a cascade, and in the second pass of method `citations`."),
        col("pair_kind", S, "`single`: one window of one chunk. `pack`: as much of all chunks as fits into one request. `joint`: the best windows together. `joint_cited`: all cited chunks together. `cited_without`: all cited chunks except one. `found_true`: claims of the answer that the first pass found true.", null=False),
        col("evidence", pa.list_(EVIDENCE), "The shown parts of chunks: `text[start:end]`; best first for joint pairs. For `found_true`, ids of claims instead of chunks.", null=False),
        col("cited", B, "The claim cites every chunk in this evidence.", null=False),
        col("request_key", S, "Hash of the judge's exact input; joins `verdicts`.", null=False),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
)  # fmt: skip

VERDICTS = Table(
    "verdicts",
    "one verdict on one request by one judge version",
    pa.schema([
        JUDGE_VERSION,
        col("date", pa.date32(), "Day of the first trace that needed it.", null=False),
        col("request_key", S, "Hash of the judge's exact input.", null=False),
        col("sample", I32, "Number of the judge's sample, from 0.", null=False),
        col("label", S, "supported, partially_supported, unsupported, contradicted or abstained; null on failure."),
        col("failure", S, "Reason for the missing label. Exactly one of label and failure is set."),
        col("p_supported", F64, "Probability that the evidence entails the claim."),
        col("p_contradicted", F64, "Probability that the evidence contradicts the claim; null if the judge gives none."),
        col("passages", pa.list_(I32), "Numbers, from 1, of the deciding parts of the evidence, the most important first; empty if the judge names none."),
        col("explanation", S, "The judge's explanation, if it gives one."),
        col("raw", S, "The original reply, stored with a failure."),
        col("tokens_in", I32, "Tokens read, `tokens_cached` included.", null=False),
        col("tokens_cached", I32, "Tokens from the prefix cache."),
        col("tokens_out", I32, "Tokens written.", null=False),
        col("engine", S, "Engine that ran the model.", null=False),
        col("created_at", TS, "When the verdict was stored.", null=False),
    ]),
    ("judge_version", "date"),
    lost=f"{UNTEXTED}, and second verdicts, which `leadline noise` repeats",
)  # fmt: skip

RELEVANCE = Table(
    "relevance",
    "one relevance score: question and answer, question and one chunk, or question and all chunks",
    pa.schema([
        col("scorer_version", S, "Hash of the model and method.", null=False),
        DATE,
        TRACE_ID,
        col("kind", S, "`answer`, `context` or `answerability`.", null=False),
        col("chunk_id", S, "The chunk, if kind is `context`."),
        col("method", S, "Method: `embedding`, `questions`, `reranker`, `coverage` or `rated`.", null=False),
        col("score", F64, "In [0, 1]; null on failure."),
        col("failure", S, "Reason for the missing score."),
        col("tokens_in", I32, "Tokens read for it, `tokens_cached` included; 0 if the text was just read for another score.", null=False),
        col("tokens_cached", I32, "Tokens from the prefix cache."),
        col("tokens_out", I32, "Tokens written."),
    ]),
    ("scorer_version", "date"),
    lost=UNTEXTED,
)  # fmt: skip

GRADES = Table(
    "grades",
    "one of the six grades of one trace by one grader version",
    pa.schema([
        col("grader_version", S, "Hash of everything that can change a grade; see `judges`.", null=False),
        DATE,
        TRACE_ID,
        col("extractor_version", S, "Version of the extractor whose claims are the statements.", null=False),
        col("grade", S, "`answer_relevancy` and `completeness` (1 to 5), `faithfulness` and `usefulness` (0 or 1), or a derived grade: `positive_acceptance`, `negative_rejection` (0 or 1).", null=False),
        col("status", S, "`scored`, `na` (the grade does not apply to the answer), `unparsable` (the reply is not a valid grade) or `failed` (no reply).", null=False),
        col("value", F64, "The grade; null unless scored. May be fractional as an average of samples."),
        col("failure", S, "Reason for unparsable or failed; null otherwise."),
        col("explanation", S, "The grader's explanation, if it gives one."),
        col("raw", S, "The original reply, stored with a failure."),
        col("tokens_in", I32, "Tokens read for it, `tokens_cached` included.", null=False),
        col("tokens_cached", I32, "Tokens from the prefix cache.", null=False),
        col("tokens_out", I32, "Tokens written.", null=False),
        col("engine", S, "Engine that ran the model.", null=False),
    ]),
    ("grader_version", "date"),
    lost=UNTEXTED,
)  # fmt: skip
