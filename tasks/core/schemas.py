"""The tables, declared once as Arrow schemas. `docs/tables.md` is generated from here.

Every column carries its description as field metadata. `GRAIN` says what one row of each table is.
Texts of traces stand in `traces` and, where a row was refused, in `quarantine`; claims quote the answer.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TS = pa.timestamp("us", tz="UTC")
S, I32, I64, F64, B = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
STRINGS = pa.list_(S)


def col(name: str, type_: pa.DataType, doc: str, *, null: bool = True) -> "pa.Field[Any]":
    """A documented column."""
    return pa.field(name, type_, nullable=null, metadata={"doc": doc})


CHUNK = pa.struct([("chunk_id", S), ("doc_id", S), ("title", S), ("rank", I32), ("text", S), ("retrieval_score", F64)])
CITATION = pa.struct([("start", I32), ("end", I32), ("chunk_ids", STRINGS)])
FEEDBACK = pa.struct([("score", F64), ("comment", S)])
EVIDENCE = pa.struct([("chunk_id", S), ("start", I32), ("end", I32)])
CITED_SUPPORT = pa.struct([("chunk_id", S), ("label", S), ("p_supported", F64)])
STAGE = pa.struct([
    ("stage", S), ("seconds", F64), ("computed", I64), ("reused", I64), ("tokens_in", I64), ("tokens_cached", I64),
    ("tokens_out", I64), ("judge_version", S), ("gpus", I32),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its grain in words, its columns, and the keys its parts are laid out by.

    Attributes:
        partition: Hive-style directories of the lake, outermost first (`date=2026-11-01/`). The files hold the
            partition columns too, so that a part says by itself what it is.
    """

    name: str
    grain: str
    schema: pa.Schema
    partition: tuple[str, ...] = ()

    @property
    def stored(self) -> pa.Schema:
        """The columns without those that the lake adds when it files a part away."""
        return pa.schema([f for f in self.schema if f.name not in self.partition])


DATE = col("date", pa.date32(), "Day of the trace's timestamp, UTC.", null=False)
TRACE_ID = col("trace_id", S, "The application's id of the trace.", null=False)
CLAIM_ID = col("claim_id", S, "Hash of trace id, extractor version and ordinal.", null=False)
APP = col("app", S, "Application that answered.", null=False)
GENERATOR = col("generator", S, "Model or system that wrote the answer.", null=False)
JUDGE_VERSION = col("judge_version", S, "Hash of everything that can change a verdict; see `judges`.", null=False)
RECIPE = col("recipe", S, "Hash of extractor, pairing, judge, scoring SQL and parameters.", null=False)
N_COLUMNS = [
    col("n", I64, "Traces.", null=False),
    col("n_scored", I64, "Traces that have the number; only these enter the mean.", null=False),
    col("n_na", I64, "Traces to which the question does not apply.", null=False),
    col("n_unjudged", I64, "Traces to which it applies but no verdict could be had.", null=False),
    col("n_abstained", I64, "Traces of which the judge said that it can't tell.", null=False),
]


def interval(prefix: str, what: str) -> "list[pa.Field[Any]]":
    """Mean and 95% confidence interval columns of one number."""
    return [
        col(f"{prefix}_mean", F64, f"Mean {what} over the scored traces."),
        col(f"{prefix}_low", F64, "Lower end of its 95% interval over traces; null below two scored traces."),
        col(f"{prefix}_high", F64, "Upper end of the interval."),
    ]


TRACES = Table(
    "traces",
    "one answered question",
    pa.schema([
        DATE,
        TRACE_ID,
        col("timestamp", TS, "When the question was answered.", null=False),
        APP,
        col("environment", S, "Deployment environment."),
        col("session", S, "Conversation that the question belongs to."),
        col("question", S, "What the user asked.", null=False),
        col("answer", S, "What the application answered, in Markdown.", null=False),
        col("chunks", pa.list_(CHUNK), "Retrieved passages, in the order they were given to the generator.", null=False),
        GENERATOR,
        col("prompt_version", S, "Version of the generator's prompt."),
        col("retriever", S, "Retriever that found the chunks."),
        col("latency_ms", F64, "Time to answer, milliseconds."),
        col("tokens_in", I64, "Prompt tokens of the generator."),
        col("tokens_out", I64, "Completion tokens of the generator."),
        col("tags", pa.map_(S, S), "Free labels.", null=False),
        col("reference_answer", S, "A known good answer."),
        col("gold_chunk_ids", STRINGS, "Annotated right sources."),
        col("citations", pa.list_(CITATION), "References logged as structure: spans of the answer and the chunks they cite."),
        col("feedback", FEEDBACK, "What the user said of the answer."),
        col("repeat", I32, "Which repetition of the same question this is."),
        col("content_hash", S, "Hash of the whole trace; tells a harmless copy from a conflicting one.", null=False),
    ]),
    ("date",),
)  # fmt: skip

CLAIMS = Table(
    "claims",
    "one claim of one answer, as one extractor version cuts it",
    pa.schema([
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("ordinal", I32, "Position among the answer's claims, from 0.", null=False),
        col("text", S, "The claim: `answer[span_start:span_end]`, or a fact of it in words of its own.", null=False),
        col("hypothesis", S, "The claim as the judge reads it: without references and markup.", null=False),
        col("span_start", I32, "First character in the answer, from 0; facts of one sentence share its span.", null=False),
        col("span_end", I32, "One past the last character.", null=False),
        col("cited_chunk_ids", STRINGS, "Chunks of the trace that the claim cites.", null=False),
        col("dangling_citations", STRINGS, "References to chunks that are not in the trace, as written.", null=False),
    ]),
    ("extractor_version", "date"),
)  # fmt: skip

PAIRS = Table(
    "pairs",
    "one look of the judge: one claim against one body of evidence",
    pa.schema([
        RECIPE,
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("stage", I32, "Which judge of the recipe looks, from 1; above 1 in a cascade only."),
        col("look", S, "`single`: one window of one chunk. `pack`: as much of all chunks as is shown at once. `joint`: the best chunks together. `joint_cited`: the cited ones together, or alone.", null=False),
        col("evidence", pa.list_(EVIDENCE), "What the judge saw of which chunk: `text[start:end]`; best first where joint.", null=False),
        col("cited", B, "The claim cites every chunk in this evidence.", null=False),
        col("request_key", S, "Hash of exactly the text that the judge saw; joins `verdicts`.", null=False),
    ]),
    ("recipe", "date"),
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
)  # fmt: skip

RELEVANCE = Table(
    "relevance",
    "one relevance score: question against answer, or question against one chunk",
    pa.schema([
        col("scorer_version", S, "Hash of the model and method.", null=False),
        DATE,
        TRACE_ID,
        col("kind", S, "`answer` or `context`.", null=False),
        col("chunk_id", S, "The chunk, where kind is `context`."),
        col("method", S, "How it was scored: `embedding`.", null=False),
        col("score", F64, "Relevance in [0, 1]; null on failure."),
        col("failure", S, "Why there is no score; null otherwise."),
        col("tokens_in", I32, "Tokens read for it; a text that the run had read before costs none.", null=False),
    ]),
    ("scorer_version", "date"),
)  # fmt: skip

CLAIM_RESULTS = Table(
    "claim_results",
    "one claim under one recipe",
    pa.schema([
        RECIPE,
        DATE,
        CLAIM_ID,
        TRACE_ID,
        JUDGE_VERSION,
        col("status", S, "`judged`, `na` (there was nothing to check it against), `unjudged` or `abstained`.", null=False),
        col("label", S, "supported, partially_supported, unsupported or contradicted; null unless judged."),
        col("misused", B, "It cites chunks and none of them supports it, even in part; null if that could not be judged."),
        col("stage", I32, "Which judge of the recipe decided, from 1; above 1 in a cascade only."),
        col("stage_asked", I32, "The last judge that was asked, from 1; above `stage` where it gave no label, so that an earlier one's stands."),
        col("deciding_chunk_id", S, "The chunk that decided the label; for an unsupported claim, the one that came closest."),
        col("deciding_chunk_ids", STRINGS, "The deciding chunk, or all that decide it, each or together, best first.", null=False),
        col("cited_support", pa.list_(CITED_SUPPORT), "Verdict on each cited chunk that was shown by itself.", null=False),
        col("confidence", F64, "Probability in [0, 1] that the label is right, as the judge sees it."),
        col("p_supported", F64, "Highest probability of support over all looks of the judge that decided."),
        col("p_contradicted", F64, "Highest probability of contradiction over all looks of the judge that decided."),
        col("looks", I32, "Looks at the claim of the judge that decided.", null=False),
        col("looks_unjudged", I32, "Looks without a label.", null=False),
        col("patterns", STRINGS, "`citation_drift` (misused, and another chunk supports it), `dangling_citation`.", null=False),
        col("needs_review", B, "Misused, abstained, unjudged, or left without a label by the last judge asked: worth a person's look.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

TRACE_SCORES = Table(
    "trace_scores",
    "one trace under one recipe",
    pa.schema([
        RECIPE,
        DATE,
        TRACE_ID,
        col("timestamp", TS, "When the question was answered.", null=False),
        APP,
        col("environment", S, "Deployment environment."),
        GENERATOR,
        col("prompt_version", S, "Version of the generator's prompt."),
        JUDGE_VERSION,
        col("groundedness_status", S, "`scored`, `na` (no context, or nothing is claimed), `unjudged` or `abstained`.", null=False),
        col("groundedness_score", F64, "100 · (supported + c·partial − p·misused) / judged claims, clamped to [0, 100]."),
        col("faithfulness", F64, "Supported claims / judged claims, in [0, 1]."),
        col("claims_total", I32, "Claims in the answer.", null=False),
        col("claims_judged", I32, "Claims that have a label.", null=False),
        col("claims_supported", I32, "Claims that the evidence entails.", null=False),
        col("claims_partial", I32, "Claims that it entails in part.", null=False),
        col("claims_unsupported", I32, "Claims that are not in the evidence.", null=False),
        col("claims_contradicted", I32, "Claims of which the evidence says otherwise.", null=False),
        col("claims_misused", I32, "Judged claims that cite chunks of which none supports them, even in part.", null=False),
        col("claims_unjudged", I32, "Claims without a verdict.", null=False),
        col("claims_abstained", I32, "Claims of which the judge can't tell.", null=False),
        col("claims_escalated", I32, "Claims that went on to a further judge of the cascade."),
        col("citations_dangling", I32, "References to chunks that are not in the trace, counted with each claim that they cover.", null=False),
        col("chunks_retrieved", I32, "Chunks in the trace.", null=False),
        col("chunks_used", I32, "Chunks that decide a supported claim; null unless groundedness is scored."),
        col("chunks_unused", STRINGS, "The other chunks; null unless groundedness is scored."),
        col("utilization", F64, "chunks_used / chunks_retrieved, in [0, 1]; null unless groundedness is scored."),
        col("chunks_relevant", I32, "Chunks relevant to the question; null unless context relevance is scored."),
        col("context_relevance_status", S, "`scored`, `na` (no chunks) or `unjudged`.", null=False),
        col("context_relevance", F64, "Relevance to the question of the best chunk, in [0, 1]."),
        col("answer_relevance_status", S, "`scored` or `unjudged`.", null=False),
        col("answer_relevance", F64, "Relevance of the answer to the question, in [0, 1]."),
        col("diagnosis", S, "Which layer failed: `retrieval`, `generator`, `prompt` or `healthy`; null where a question has no answer.")
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_KEY = [RECIPE, DATE, APP, GENERATOR, JUDGE_VERSION]
PERCENTILES = [5, 25, 50, 75, 95]

NIGHTLY_GROUNDEDNESS = Table(
    "nightly_groundedness",
    "one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        *N_COLUMNS,
        *interval("groundedness", "groundedness_score"),
        *[col(f"groundedness_p{q:02d}", F64, f"Percentile {q} of groundedness_score.") for q in PERCENTILES],
        *interval("faithfulness", "faithfulness"),
        col("claims_total", I64, "Claims.", null=False),
        col("claims_judged", I64, "Claims that have a label.", null=False),
        col("claims_supported", I64, "Supported claims.", null=False),
        col("claims_partial", I64, "Partially supported claims.", null=False),
        col("claims_unsupported", I64, "Unsupported claims.", null=False),
        col("claims_contradicted", I64, "Contradicted claims.", null=False),
        col("claims_misused", I64, "Claims that misuse their citation.", null=False),
        col("claims_unjudged", I64, "Claims without a verdict.", null=False),
        col("claims_abstained", I64, "Claims of which the judge can't tell.", null=False),
        col("claims_escalated", I64, "Claims that went on to a further judge of the cascade."),
        col("citations_dangling", I64, "References to chunks that are not in the trace, counted with each claim that they cover.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_UTILIZATION = Table(
    "nightly_utilization",
    "one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        *N_COLUMNS,
        *interval("utilization", "utilization"),
        *[col(f"utilization_p{q:02d}", F64, f"Percentile {q} of utilization.") for q in PERCENTILES],
        col("chunks_retrieved", I64, "Chunks of the scored traces.", null=False),
        col("chunks_used", I64, "Chunks of the scored traces that decide a supported claim.", null=False),
        col("chunks_relevant", I64, "Relevant chunks of the traces whose context relevance is scored.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_RELEVANCE = Table(
    "nightly_relevance",
    "one night of one app and generator under one recipe, answer and context apart",
    pa.schema([
        *NIGHTLY_KEY,
        col("kind", S, "`answer` or `context` (the best chunk of each trace).", null=False),
        *N_COLUMNS,
        *interval("relevance", "relevance"),
        *[col(f"relevance_p{q:02d}", F64, f"Percentile {q} of relevance.") for q in PERCENTILES],
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_TRIAD = Table(
    "nightly_triad",
    "one diagnosis of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("diagnosis", S, "`retrieval`, `generator`, `prompt`, `healthy`, or `none` where a question has no answer.", null=False),
        col("n", I64, "Traces with this diagnosis.", null=False),
        col("share", F64, "Share of the diagnosed traces of the night, app and generator; null for `none`."),
        col("share_low", F64, "Lower end of its 95% Wilson interval."),
        col("share_high", F64, "Upper end of the interval."),
    ]),
    ("recipe", "date"),
)  # fmt: skip

JUDGES = Table(
    "judges",
    "one judge version",
    pa.schema([
        JUDGE_VERSION,
        col("name", S, "Name in its config.", null=False),
        col("kind", S, "Kind of judge; `cascade` for several that are asked one after another.", null=False),
        col("definition", S, "Everything that is hashed into the version, as JSON.", null=False),
    ]),
)  # fmt: skip

RECIPES = Table(
    "recipes",
    "one recipe",
    pa.schema([
        RECIPE,
        col("name", S, "Name in the config.", null=False),
        JUDGE_VERSION,
        col("judge_versions", STRINGS, "Version of each judge, in the order they are asked; their verdicts stand under these."),
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        col("scorer_version", S, "Hash of the relevance scorer.", null=False),
        col("definition", S, "Everything that is hashed into the recipe, as JSON; SQL files by their hashes.", null=False),
    ]),
)  # fmt: skip

RUNS = Table(
    "runs",
    "one run of a flow",
    pa.schema([
        col("run_id", S, "Id of the run.", null=False),
        col("flow", S, "Which flow ran.", null=False),
        col("started_at", TS, "Start.", null=False),
        col("ended_at", TS, "End; null while running or after a kill."),
        col("status", S, "`running`, `completed`, `failed` or `interrupted`.", null=False),
        col("error", S, "What went wrong, without any trace text."),
        col("from_date", pa.date32(), "First day asked for.", null=False),
        col("to_date", pa.date32(), "Last day asked for.", null=False),
        RECIPE,
        JUDGE_VERSION,
        col("stages", pa.list_(STAGE), "Per stage: seconds, rows computed, rows found already there; tokens read, of these spared by a prefix cache, and written; of judging stages, whose verdicts and on how many GPUs.", null=False),
        col("traces_ingested", I64, "New traces.", null=False),
        col("rows_quarantined", I64, "Rows refused by this run.", null=False),
        col("verdicts_computed", I64, "Verdicts paid for by this run.", null=False),
        col("tokens_in", I64, "Tokens read by models, those of `tokens_cached` included.", null=False),
        col("tokens_cached", I64, "Tokens that a prefix cache spared the models."),
        col("tokens_out", I64, "Tokens written by models.", null=False),
        col("gpu_seconds", F64, "Seconds for which the run held GPUs, times their number.", null=False),
        col("notes", STRINGS, "What the run wants a person to know.", null=False),
    ]),
)  # fmt: skip

QUARANTINE = Table(
    "quarantine",
    "one refused row",
    pa.schema([
        col("source", S, "File, or table for results.", null=False),
        col("line", I64, "Line of the file, from 1; null for results."),
        col("trace_id", S, "Trace, where it could be read."),
        col("date", pa.date32(), "Day, where it could be read."),
        col("stage", S, "`parse`, `gate`, `duplicate` or `results`.", null=False),
        col("reason", S, "Machine-readable reason.", null=False),
        col("detail", S, "What was found, without trace text."),
        col("raw", S, "The row as it came; bytes that are not UTF-8 are escaped as \\xNN.", null=False),
    ]),
)  # fmt: skip

SOURCES = Table(
    "sources",
    "one ingested state of one source file",
    pa.schema([
        col("source", S, "File or URL.", null=False),
        col("fingerprint", S, "Hash of its size and modification time or ETag.", null=False),
        col("rows", I64, "Rows in it: ingested + known + quarantined.", null=False),
        col("ingested", I64, "New traces.", null=False),
        col("known", I64, "Traces that were already there, unchanged.", null=False),
        col("quarantined", I64, "Rows refused.", null=False),
        col("ingested_at", TS, "When.", null=False),
    ]),
)  # fmt: skip

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        TRACES, CLAIMS, PAIRS, VERDICTS, RELEVANCE, CLAIM_RESULTS, TRACE_SCORES, NIGHTLY_GROUNDEDNESS,
        NIGHTLY_UTILIZATION, NIGHTLY_RELEVANCE, NIGHTLY_TRIAD, JUDGES, RECIPES, RUNS, QUARANTINE, SOURCES,
    )
}  # fmt: skip
