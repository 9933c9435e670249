"""Tables of what is judged: claims, pairs, verdicts, relevance and grades."""

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
    "one claim of one answer, or what else one extractor version cuts from it",
    pa.schema([
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("ordinal", I32, "Position among what was cut from the answer, from 0.", null=False),
        col("kind", S, "`claim`, or what is neither judged nor scored: `heading`, `lead-in`, `greeting`, `pointer` (where to read on), `question`, `refusal` (there is no answer), `reasoning` (no part of the answer).", null=False),
        col("language", S, "ISO 639 code of its language; null where it can't be told."),
        col("text", S, "The claim: `answer[span_start:span_end]`, or a fact of it in words of its own.", null=False),
        col("context", S, "What it is read with: lead-in and term of a list item, head and row label of a table's cell, the question of a \"yes\"; empty where nothing is.", null=False),
        col("hypothesis", S, "The claim as the judge reads it: behind its context, without references and markup.", null=False),
        col("span_start", I32, "First character in the answer, from 0; facts of one sentence share its span.", null=False),
        col("span_end", I32, "One past the last character.", null=False),
        col("cited_chunk_ids", STRINGS, "Chunks of the trace that the claim cites.", null=False),
        col("dangling_citations", STRINGS, "References to chunks that are not in the trace, as written.", null=False),
    ]),
    ("extractor_version", "date"),
    lost=f"{UNTEXTED}, and answers that a model cut (extractor `atomic`): it may cut them otherwise",
)  # fmt: skip

PAIRS = Table(
    "pairs",
    "one look of the judge: one claim against one body of evidence",
    pa.schema([
        RECIPE,
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("stage", I32, "Which judge of the recipe looks, from 1; above 1 in a cascade, and in the second pass of method `citations`."),
        col("pair_kind", S, "`single`: one window of one chunk. `pack`: as much of all chunks as is shown at once. `joint`: the best windows together. `joint_cited`: all that is cited together. `cited_without`: all that is cited but one chunk. `found_true`: claims of the answer that the first pass found true.", null=False),
        col("evidence", pa.list_(EVIDENCE), "What the judge saw of which chunk: `text[start:end]`; best first where joint. Of `found_true`, ids of claims stand for chunks.", null=False),
        col("cited", B, "The claim cites every chunk in this evidence.", null=False),
        col("request_key", S, "Hash of exactly the text that the judge saw; joins `verdicts`.", null=False),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
)  # fmt: skip

VERDICTS = Table(
    "verdicts",
    "one judgement of one request by one judge version",
    pa.schema([
        JUDGE_VERSION,
        col("date", pa.date32(), "Day of the trace for which it was first needed.", null=False),
        col("request_key", S, "Hash of exactly the text that the judge saw.", null=False),
        col("sample", I32, "Which sample of the judge, from 0.", null=False),
        col("label", S, "supported, partially_supported, unsupported, contradicted or abstained; null on failure."),
        col("failure", S, "Why there is no label; null otherwise. Exactly one of label and failure is set."),
        col("p_supported", F64, "Probability that the evidence entails the claim."),
        col("p_contradicted", F64, "Probability that the evidence says otherwise; null if the judge can't tell."),
        col("passages", pa.list_(I32), "Numbers, from 1, of the parts of the evidence that decide the label, the deciding one first; empty where the judge names none."),
        col("explanation", S, "The judge's reasons, where it gives any."),
        col("raw", S, "The reply as it came, kept with a failure."),
        col("tokens_in", I32, "Tokens read, those of `tokens_cached` included.", null=False),
        col("tokens_cached", I32, "Tokens that a prefix cache spared the model."),
        col("tokens_out", I32, "Tokens written.", null=False),
        col("engine", S, "Engine that ran the model.", null=False),
        col("created_at", TS, "When the verdict was stored.", null=False),
    ]),
    ("judge_version", "date"),
    lost=f"{UNTEXTED}, and second verdicts, which `leadline noise` asks for again",
)  # fmt: skip

RELEVANCE = Table(
    "relevance",
    "one relevance score: question against answer, question against one chunk, or question against all chunks",
    pa.schema([
        col("scorer_version", S, "Hash of the model and method.", null=False),
        DATE,
        TRACE_ID,
        col("kind", S, "`answer`, `context` or `answerability`.", null=False),
        col("chunk_id", S, "The chunk, where kind is `context`."),
        col("method", S, "How it was scored: `embedding`, `questions`, `reranker`, `coverage` or `graded`.", null=False),
        col("score", F64, "In [0, 1]; null on failure."),
        col("failure", S, "Why there is no score; null otherwise."),
        col("tokens_in", I32, "Tokens read for it, those of `tokens_cached` included; a text that was read a moment before costs none.", null=False),
        col("tokens_cached", I32, "Tokens that a prefix cache spared the model."),
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
        col("extractor_version", S, "Whose claims the grader was given as the answer's statements.", null=False),
        col("grade", S, "`answer_relevancy` and `completeness` (1 to 5), `faithfulness` and `usefulness` (0 or 1), or one that follows from the first two: `positive_acceptance`, `negative_rejection` (0 or 1).", null=False),
        col("status", S, "`scored`, `na` (the grade does not apply to the answer), `unparsable` (there is a reply that can't be read as a grade) or `failed` (there is none).", null=False),
        col("value", F64, "The grade; null unless scored. Not whole where samples were averaged."),
        col("failure", S, "Why it is unparsable or failed; null otherwise."),
        col("explanation", S, "The grader's reasons, where it gives any."),
        col("raw", S, "The reply as it came, kept with a failure."),
        col("tokens_in", I32, "Tokens read for it, those of `tokens_cached` included.", null=False),
        col("tokens_cached", I32, "Tokens that a prefix cache spared the model.", null=False),
        col("tokens_out", I32, "Tokens written.", null=False),
        col("engine", S, "Engine that ran the model.", null=False),
    ]),
    ("grader_version", "date"),
    lost=UNTEXTED,
)  # fmt: skip
