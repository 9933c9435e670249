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
SPAN = pa.struct([("start", I32), ("end", I32)])
CITED_SUPPORT = pa.struct([("chunk_id", S), ("label", S), ("p_supported", F64)])
FLIP = pa.struct([("first", S), ("second", S), ("n", I64)])
STAGE = pa.struct([
    ("stage", S), ("seconds", F64), ("computed", I64), ("reused", I64), ("tokens_in", I64), ("tokens_cached", I64),
    ("tokens_out", I64), ("judge_version", S), ("gpus", I32),
])  # fmt: skip


DAYS = "`leadline nightly` over its days, or `leadline backfill` if that made it,"
UNTEXTED = "rows of traces whose text was removed"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its grain in words, its columns, the keys its parts are laid out by, and whether a part can be remade.

    Attributes:
        partition: Hive-style directories of the lake, outermost first (`date=2026-11-01/`). The files hold the
            partition columns too, so that a part says by itself what it is.
        remade: What makes a part again from what is there, once it is removed; empty where nothing does.
        lost: What a removed part takes with it for good; empty where all of it is remade.
    """

    name: str
    grain: str
    schema: pa.Schema
    partition: tuple[str, ...] = ()
    remade: str = DAYS
    lost: str = ""

    @property
    def remedy(self) -> str:
        """What to do where a part is damaged."""
        if not self.remade:
            return f"It can't be made again: restore it from a backup. Removing the file loses {self.lost}."
        lost = f", but for {self.lost}; where these matter, restore it from a backup" if self.lost else ""
        return f"Remove the file and run {self.remade} again: it is made anew{lost}."

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
    return [col(f"{prefix}_mean", F64, f"Mean {what} over the scored traces."), *ends(prefix)]


def ends(prefix: str, unless: str = "null below two of them") -> "list[pa.Field[Any]]":
    """Columns of the 95% confidence interval of one number."""
    return [
        col(f"{prefix}_low", F64, f"Lower end of its 95% interval over questions; {unless}."),
        col(f"{prefix}_high", F64, "Upper end of the interval."),
    ]


def top(number: str) -> float:
    """Where the scale of a nightly number ends; it begins at 0."""
    return 100.0 if number == "groundedness" else 1.0


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
        col("text_removed_at", TS, "When question, answer, titles and texts of chunks, reference answer, comment, session and tags were removed; null while they are here."),
        col("text_removed", S, "Why: `expired` (`retention.text_days`) or `deleted` (`leadline forget`)."),
    ]),
    ("date",),
    remade="",
    lost="its traces and their texts. Where their log file is still there, remove the part of `sources` too whose name this one begins with: the file is read again",
)  # fmt: skip

NEVER_READ = ("content_hash", "text_removed_at", "text_removed")  # columns of `traces` that no source gives

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
        col("stage", I32, "Which judge of the recipe looks, from 1; above 1 in a cascade, and in round two of method `citations`."),
        col("look", S, "`single`: one window of one chunk. `pack`: as much of all chunks as is shown at once. `joint`: the best windows together. `joint_cited`: all that is cited together. `cited_without`: all that is cited but one chunk. `found_true`: claims of the answer that round one found true.", null=False),
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
        col("language", S, "ISO 639 code of the claim's language; null where it can't be told."),
        col("abstained_for", S, "Of abstained claims: `judge` (it could not tell) or `language` (it does not read the claim's)."),
        col("misused", B, "It cites chunks and none of them, alone or together, supports it, even in part; null if that could not be judged."),
        col("citation_recall", F64, "1 if all that it cites, taken together, entails it, else 0, also where it cites nothing; null if that could not be judged."),
        col("citations_counted", I32, "Its citations that could be judged, dangling ones included.", null=False),
        col("citations_precise", I32, "Those of them that entail it alone, or without which the rest does not.", null=False),
        col("stage", I32, "Which judge of the recipe decided, from 1; above 1 in a cascade only. Of method `citations`, the round."),
        col("stage_asked", I32, "The last judge that was asked, from 1; above `stage` where it gave no label, so that an earlier one's stands."),
        col("deciding_chunk_id", S, "The chunk that decided the label; for an unsupported claim, the one that came closest."),
        col("deciding_chunk_ids", STRINGS, "The deciding chunk, or all that decide it, each or together, best first.", null=False),
        col("cited_support", pa.list_(CITED_SUPPORT), "Verdict on each cited chunk that was shown by itself.", null=False),
        col("confidence", F64, "Probability in [0, 1] that the label is right, as the judge sees it."),
        col("p_supported", F64, "Highest probability of support over all looks of the judge that decided."),
        col("p_contradicted", F64, "Highest probability of contradiction over all looks of the judge that decided."),
        col("looks", I32, "Looks at the claim of the judge that decided.", null=False),
        col("looks_unjudged", I32, "Looks without a label.", null=False),
        col("patterns", STRINGS, "Failure patterns that the claim shows; their evidence stands in `claim_patterns`.", null=False),
        col("to_check", B, "It is called supported, and shows a failure pattern.", null=False),
        col("needs_review", B, "Misused, to check, abstained, unjudged, or left without a label by the last judge asked: worth a person's look.", null=False),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
)  # fmt: skip

CLAIM_PATTERNS = Table(
    "claim_patterns",
    "one failure pattern of one claim under one recipe",
    pa.schema([
        RECIPE,
        DATE,
        CLAIM_ID,
        TRACE_ID,
        col("pattern", S, "`citation_drift`, `dangling_citation`, `ghost_number`, `stitched_facts`, `generalized_particular` or `reverse_direction`.", null=False),
        col("said", pa.list_(SPAN), "Where in the answer: `answer[start:end]`; empty where it is the claim as a whole.", null=False),
        col("shown", pa.list_(EVIDENCE), "Where in the chunks: `text[start:end]`; empty where the pattern is that no chunk has it.", null=False),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
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
        col("question_id", S, "Hash of the question, salted for this lake, without regard to case and spaces: the same where it was asked again. Null once the text was removed."),
        col("groundedness_status", S, "`scored`, `na` (no context, or nothing is claimed), `unjudged` or `abstained`.", null=False),
        col("groundedness_na", S, "Why it is N/A: `no_answer` (the answer is empty), `no_context`, `refusal` (it only says that there is no answer), `no_claims`, `not_shown` (what it claims was held against nothing) or `method`."),
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
        col("claims_unread", I32, "Abstained claims in a language that no judge asked reads.", null=False),
        col("claims_to_check", I32, "Supported claims that show a failure pattern.", null=False),
        col("claims_stopping", I32, "Claims that stop the answer in the waterfall by their label.", null=False),
        col("refusals", I32, "Sentences that say that there is no answer.", null=False),
        col("citation_recall", F64, "Mean of the judged claims' citation_recall, in [0, 1]; null where none has one."),
        col("citation_precision", F64, "Precise citations / citations of the judged claims, in [0, 1]; null where nothing is cited."),
        col("citations_dangling", I32, "References to chunks that are not in the trace, counted with each claim that they cover.", null=False),
        col("chunks_retrieved", I32, "Chunks in the trace.", null=False),
        col("chunks_used", I32, "Chunks that decide a supported claim; null unless groundedness is scored."),
        col("chunks_unused", STRINGS, "The other chunks; null unless groundedness is scored."),
        col("utilization", F64, "chunks_used / chunks_retrieved, in [0, 1]; null unless groundedness is scored."),
        col("chunks_relevant", I32, "Chunks relevant to the question; null unless context relevance is scored."),
        col("context_relevance_status", S, "`scored`, `na` (no chunks) or `unjudged` (a chunk has no score).", null=False),
        col("context_relevance", F64, "Relevance to the question of the best chunk, in [0, 1]."),
        col("answer_relevance_status", S, "`scored`, `na` (the answer is empty) or `unjudged`.", null=False),
        col("answer_relevance", F64, "Relevance of the answer to the question, in [0, 1]."),
        col("answerability_status", S, "`scored`, `na` (no chunks) or `unjudged`."),
        col("answerability", F64, "How far the question can be answered from the chunks, in [0, 1]."),
        col("diagnosis", S, "Which layer failed: `retrieval`, `generator`, `prompt` or `healthy`; null where a question has no answer."),
        col("citation_status", S, "Of recipes of method `citations`: `scored`, `na` (no context, or no references), `unjudged` or `abstained`."),
        col("citation_groundedness", F64, "Segments found true / judged segments, in [0, 1]; null unless citation_status is scored."),
        col("segments_total", I32, "Segments of the answer; null where the method is another, or citations are N/A, as the next ones."),
        col("segments_judged", I32, "Segments that have a label."),
        col("segments_true", I32, "Segments found true, in either round."),
        col("segments_cited", I32, "Segments with references: those of round one."),
        col("segments_cited_judged", I32, "Those of them that have a label."),
        col("segments_cited_true", I32, "Those of them found true."),
        col("segments_dangling", I32, "Segments of which every reference dangles; they count as judged, and not as true."),
        col("weakest_support", F64, "Lowest p_supported of the claims; null where one stops the answer by its label, is unjudged or abstained, or none is judged."),
        col("waterfall", S, "First stage that the trace does not pass: `retrieval`, `answerability`, `faithfulness` or `answer_relevance`; `sent` if it passes all."),
        col("waterfall_uncertain", B, "It stops there because the signal is missing."),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
)  # fmt: skip

NIGHTLY_KEY = [RECIPE, DATE, APP, GENERATOR, JUDGE_VERSION]
PERCENTILES = [5, 25, 50, 75, 95]

NIGHTLY_GROUNDEDNESS = Table(
    "nightly_groundedness",
    "one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        *N_COLUMNS,
        col("n_no_answer", I64, "Traces that are N/A since the answer is empty.", null=False),
        col("n_refusal", I64, "Traces that are N/A since the answer only says that there is none.", null=False),
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
        col("misused_share", F64, "Share of the judged claims that do; null without any."),
        *ends("misused_share"),
        col("claims_to_check", I64, "Supported claims that show a failure pattern.", null=False),
        col("claims_unjudged", I64, "Claims without a verdict.", null=False),
        col("claims_abstained", I64, "Claims of which the judge can't tell.", null=False),
        col("claims_unread", I64, "Abstained claims in a language that no judge asked reads.", null=False),
        col("claims_escalated", I64, "Claims that went on to a further judge of the cascade."),
        *interval("citation_recall", "citation_recall"),
        *interval("citation_precision", "citation_precision"),
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
    "one kind of relevance of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("kind", S, "`answer`, `context` (the best chunk of each trace) or `answerability`.", null=False),
        *N_COLUMNS,
        *interval("relevance", "relevance"),
        *[col(f"relevance_p{q:02d}", F64, f"Percentile {q} of relevance.") for q in PERCENTILES],
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_GRADES = Table(
    "nightly_grades",
    "one of the six grades of one night of one app and generator under one recipe that names a grader",
    pa.schema([
        *NIGHTLY_KEY,
        col("grader_version", S, "Whose grades they are; see `judges`.", null=False),
        col("grade", S, "One of the six; see `grades`.", null=False),
        col("n", I64, "Traces: the next five added up.", null=False),
        col("n_scored", I64, "Traces that have the grade; only these enter the mean.", null=False),
        col("n_na", I64, "Traces to which it does not apply.", null=False),
        col("n_unparsable", I64, "Traces of which the grader's reply can't be read as a grade.", null=False),
        col("n_failed", I64, "Traces for which there is no reply.", null=False),
        col("n_ungraded", I64, "Traces that were not graded: after an outage or a spent budget, until the next run; for good where the text was removed before.", null=False),
        *interval("grade", "grade"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_PATTERNS = Table(
    "nightly_patterns",
    "one failure pattern of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("pattern", S, "Name of the pattern; one row for each that the recipe looks for.", null=False),
        col("n", I64, "Judged claims that show it.", null=False),
        col("n_not_judged", I64, "Claims that show it and are N/A, unjudged or abstained; in no share.", null=False),
        col("claims_judged", I64, "Judged claims of the night, app and generator.", null=False),
        col("share", F64, "Share of the judged claims that show it; null without any."),
        *ends("share"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_LANGUAGES = Table(
    "nightly_languages",
    "one language of the claims of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("language", S, "ISO 639 code; `und` where it can't be told.", null=False),
        col("n", I64, "Claims in it.", null=False),
        col("n_judged", I64, "Those of them that have a label.", null=False),
        col("n_supported", I64, "Those of them that are supported.", null=False),
        col("n_unread", I64, "Those of them that no judge asked reads: abstained.", null=False),
        col("claims_total", I64, "Claims of the night, app and generator.", null=False),
        col("share", F64, "Share of all claims.", null=False),
        *ends("share"),
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
        *ends("share"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

WATERFALL = ("retrieval", "answerability", "faithfulness", "answer_relevance", "sent")

NIGHTLY_WATERFALL = Table(
    "nightly_waterfall",
    "one stage of the waterfall, or `sent`, of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("position", I32, "Place in the order of stages, from 1.", null=False),
        col("stage", S, "`retrieval`, `answerability`, `faithfulness`, `answer_relevance`, or `sent`: passed all.", null=False),
        col("n", I64, "Traces of the night, app and generator.", null=False),
        col("n_reached", I64, "Traces that passed the stages before.", null=False),
        col("n_stopped", I64, "Of these, those that stop here; of `sent`, all.", null=False),
        col("n_uncertain", I64, "Of those that stop here, those that do because the signal is missing.", null=False),
        col("share", F64, "n_stopped / n.", null=False),
        *ends("share"),
        col("n_reviewed", I64, "Of those that stop here, answers of which people's labels tell whether they are wrong; none that was picked for review because of its labels.", null=False),
        col("n_wrong", I64, "Of these, wrong ones.", null=False),
        col("wrong_share", F64, "n_wrong / n_reviewed; null where nothing is reviewed."),
        *ends("wrong"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

TRACE_GRACE = Table(
    "trace_grace",
    "one trace under one recipe, against its annotated right sources",
    pa.schema([
        RECIPE,
        DATE,
        TRACE_ID,
        APP,
        GENERATOR,
        col("status", S, "`scored`, or `na`: no right source is annotated.", null=False),
        col("annotated_in", S, "`trace` or `file`: who names the right sources; null where nobody looked for one."),
        col("gold", STRINGS, "Right sources, any one of which is right; empty where somebody looked and there is none, null where nobody looked."),
        col("gold_chunk_ids", STRINGS, "Chunks of the trace that are a right source or part of one.", null=False),
        col("cited", STRINGS, "Sources that the answer cites, in the order of the chunks.", null=False),
        col("outcome", S, "`hit`, `not_retrieved`, `cited_nothing`, `cited_another` or `retrieved_not_cited` (its references name no chunk); null unless scored."),
    ]),
    ("recipe", "date"),
    lost=UNTEXTED,
)  # fmt: skip

GRACE_KEY = [RECIPE, DATE, APP, GENERATOR]

NIGHTLY_GRACE = Table(
    "nightly_grace",
    "one night of one app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("n", I64, "Traces.", null=False),
        col("n_scored", I64, "Traces whose right source is annotated; only these enter the other numbers.", null=False),
        col("n_na", I64, "Traces without one.", null=False),
        col("hits", I64, "Traces whose answer cites a right source.", null=False),
        col("not_retrieved", I64, "Misses: no right source is among the chunks.", null=False),
        col("retrieved_not_cited", I64, "Misses: one is, and the answer's references name no chunk of the trace.", null=False),
        col("cited_another", I64, "Misses: one is, and the answer cites other chunks only.", null=False),
        col("cited_nothing", I64, "Misses: one is, and the answer has no reference.", null=False),
        col("accuracy", F64, "hits / n_scored; null where nothing is annotated."),
        *ends("accuracy"),
        col("precision_micro", F64, "Of all citations of sources, the share that is right; null where nothing is cited."),
        *ends("precision_micro"),
        col("recall_micro", F64, "Of all right sources that had to be cited, the share that was."),
        *ends("recall_micro"),
        col("f1_micro", F64, "2 · right / (citations + sources that had to be cited)."),
        *ends("f1_micro"),
        col("precision_macro", F64, "Mean precision over the right sources that were cited."),
        *ends("precision_macro"),
        col("recall_macro", F64, "Mean recall over the right sources."),
        *ends("recall_macro"),
        col("f1_macro", F64, "Mean F1 over the right sources."),
        *ends("f1_macro"),
        col("sources", I64, "Sources that are right of some trace.", null=False),
        col("sources_precision", I64, "Of these, those that have a precision: the others were never cited.", null=False),
        col("sources_recall", I64, "Of these, those that have a recall: for the others, another right source was always cited.", null=False),
        col("sources_f1", I64, "Of these, those that have an F1.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_GRACE_SOURCES = Table(
    "nightly_grace_sources",
    "one source that is right or cited in an annotated trace of one night, app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("source", S, "Chunk id, or document id.", null=False),
        col("support", I64, "Traces of which it is a right source.", null=False),
        col("true_positives", I64, "Of these, those whose answer cites it.", null=False),
        col("false_positives", I64, "Annotated traces whose answer cites it though it is not right.", null=False),
        col("false_negatives", I64, "Traces of which it is a right source, and whose answer cites no right source.", null=False),
        col("precision", F64, "true_positives / (true_positives + false_positives); null where nobody cites it."),
        *ends("precision"),
        col("recall", F64, "true_positives / (true_positives + false_negatives); null where nobody had to cite it."),
        *ends("recall"),
        col("f1", F64, "2 · true_positives / (2 · true_positives + false_positives + false_negatives)."),
        *ends("f1"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_GRACE_CONFUSION = Table(
    "nightly_grace_confusion",
    "one right source and what was cited for it, in one night of one app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("gold", S, "The right source.", null=False),
        col("cited", S, "What was cited for it: itself in a hit, another source in a miss; null where nothing was."),
        col("n", I64, "Traces; one that cites several others counts for each.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_REPEATS = Table(
    "nightly_repeats",
    "one number of one night of one app and generator under one recipe: groundedness and faithfulness, or, of recipes of method `citations`, citation groundedness",
    pa.schema([
        *NIGHTLY_KEY,
        col("number", S, "`groundedness`, `faithfulness` or `citation_groundedness`.", null=False),
        col("questions", I64, "Different questions of the night.", null=False),
        col("questions_repeated", I64, "Of these, asked more than once.", null=False),
        col("n", I64, "Traces of the repeated questions.", null=False),
        col("n_scored", I64, "Of these, traces that have the number.", null=False),
        col("n_na", I64, "Traces to which it does not apply.", null=False),
        col("n_unjudged", I64, "Traces to which it applies but no verdict could be had.", null=False),
        col("n_abstained", I64, "Traces of which the judge said that it can't tell.", null=False),
        col("questions_compared", I64, "Questions with at least two scored traces; only these enter the numbers.", null=False),
        col("mean", F64, "Mean over these questions of their means."),
        *ends("mean"),
        col("spread", F64, "Mean over these questions of the standard deviation of their repeats."),
        *ends("spread"),
        col("range", F64, "Mean over these questions of highest − lowest."),
        *ends("range"),
        col("share_repeats", F64, "Share of the variance that comes from repeats, W / (W + B) of one-way random effects; null below two such questions, or where nothing varies."),
        *ends("share_repeats", "null below three of them, and where it rests on one"),
    ]),
    ("recipe", "date"),
)  # fmt: skip

JUDGE_NOISE = Table(
    "judge_noise",
    "one measurement of a judge's test–retest noise: one judge of one recipe over a range of days",
    pa.schema([
        JUDGE_VERSION,
        RECIPE,
        col("from_date", pa.date32(), "First day of the traces.", null=False),
        col("to_date", pa.date32(), "Last day of the traces.", null=False),
        col("measured_at", TS, "When.", null=False),
        col("n_traces", I64, "Traces of which every verdict of this judge was asked for again.", null=False),
        col("n_asked", I64, "Their requests that had a label.", null=False),
        col("n", I64, "Requests with a label both times; only these enter the agreement.", null=False),
        col("n_failed", I64, "Requests without a label the second time: failed, or an outage.", null=False),
        col("agreement", F64, "Share of equal labels."),
        *ends("agreement"),
        col("kappa", F64, "Cohen's kappa; null where all labels are the same."),
        col("p_change", F64, "Mean |Δ p_supported|, where the judge gives it both times."),
        col("flips", pa.list_(FLIP), "Unequal labels: first, second, and how many."),
        col("number", S, "The number that is scored again: `groundedness`, or `citation_groundedness` of recipes of method `citations`.", null=False),
        col("n_scored", I64, "Traces that have it both times.", null=False),
        col("change", F64, "Mean of second − first over them."),
        col("trace_sd", F64, "Standard deviation that verdict noise alone gives one trace: √(mean of squared changes / 2)."),
        col("night_traces", F64, "Scored traces of a night, app and generator of these days, on average."),
        col("night_sd", F64, "Standard deviation that verdict noise alone gives the mean of such a night: trace_sd / √night_traces."),
    ]),
    remade="`leadline noise` over its days",
    lost="measurements over traces whose text was removed",
)  # fmt: skip

METAEVAL = Table(
    "metaeval",
    "one of the six grades of one test case of a suite by one grader version, held against its condition",
    pa.schema([
        col("judge_version", S, "Version of the grader; see `judges`.", null=False),
        col("claims_judge_version", S, "Version of the judge of claims that the grader asks; null where it asks none."),
        col("suite", S, "Name of the suite.", null=False),
        col("suite_version", S, "Hash of its cases, their files' names and lines included; the same wherever the files lie.", null=False),
        col("case_id", S, "File and line of the case.", null=False),
        col("case_key", S, "Hash of exactly what the grader was given.", null=False),
        col("topic", S, "What the case is about.", null=False),
        col("test_type", S, "What it tests.", null=False),
        col("grade", S, "`answer_relevancy`, `completeness`, `faithfulness`, `usefulness`, or one that follows from the first two: `positive_acceptance`, `negative_rejection`.", null=False),
        col("condition", S, "What the grade has to fulfil, such as `==5`, `<4` or `==None` (N/A).", null=False),
        col("outcome", S, "`passed`, `failed`, `unparsable` (there is a reply that can't be read as a grade; not passed), or `unjudged` (there is none; in no rate, and asked again).", null=False),
        col("value", F64, "The grade; null for N/A, and where it is unparsable or unjudged."),
        col("explanation", S, "The grader's reasons, where it gives any."),
        col("failure", S, "Why it is unparsable or unjudged; null otherwise."),
        col("raw", S, "The reply as it came, kept with a failure."),
        col("tokens_in", I64, "Tokens read for it, those of `tokens_cached` included; 0 for what follows from others.", null=False),
        col("tokens_cached", I64, "Tokens that a prefix cache spared the model.", null=False),
        col("tokens_out", I64, "Tokens written.", null=False),
        col("judged_at", TS, "When it was graded; the same suite again does not grade it again.", null=False),
    ]),
    ("judge_version",),
    remade="`leadline metaeval` with its judge and suite",
    lost="grades of a judge or a suite whose files are not there any more",
)  # fmt: skip

NIGHTLY_CITATIONS = Table(
    "nightly_citations",
    "one night of one app and generator under one recipe of method `citations`",
    pa.schema([
        *NIGHTLY_KEY,
        *N_COLUMNS,
        *interval("citation_groundedness", "citation_groundedness"),
        *[col(f"citation_groundedness_p{q:02d}", F64, f"Percentile {q} of citation_groundedness.") for q in PERCENTILES],
        col("segments_total", I64, "Segments of the answers to which the question applies.", null=False),
        col("segments_judged", I64, "Segments that have a label.", null=False),
        col("segments_true", I64, "Segments found true, in either round.", null=False),
        col("segments_cited", I64, "Segments with references: those of round one.", null=False),
        col("segments_cited_judged", I64, "Those of them that have a label.", null=False),
        col("segments_cited_true", I64, "Those of them found true.", null=False),
        col("segments_dangling", I64, "Segments of which every reference dangles; they count as judged, and not as true.", null=False),
        col("segments_unjudged", I64, "Segments without a verdict, and uncited ones that wait for one of round one.", null=False),
        col("segments_abstained", I64, "Segments of which the judge can't tell.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

NIGHTLY_CORRECTED = Table(
    "nightly_corrected",
    "one number of one night of one app and generator under one recipe, corrected by what people found of at least two questions",
    pa.schema([
        *NIGHTLY_KEY,
        col("number", S, "`groundedness` or `faithfulness`.", null=False),
        col("n_scored", I64, "Traces of the night that have the number.", null=False),
        col("raw_mean", F64, "Their mean, by the judge's labels.", null=False),
        col("n_reviewed", I64, "Traces of the app and generator, of any night, whose number is known by people's labels too; none that was picked for review because of its labels.", null=False),
        col("n_reviewed_questions", I64, "Their different questions.", null=False),
        col("rectifier", F64, "Mean over them of the number by people's labels minus that by the judge's.", null=False),
        col("corrected_mean", F64, "raw_mean + rectifier, cut at the ends of the scale.", null=False),
        col("corrected_low", F64, "Lower end of its 95% interval, which holds chance in the night's questions and in the reviewed ones.", null=False),
        col("corrected_high", F64, "Upper end of the interval.", null=False),
    ]),
    ("recipe", "date"),
)  # fmt: skip

REVIEWS = Table(
    "reviews",
    "one label or grade that a person gave: a label to one claim, or to one answer as a whole; a grade to an answer",
    pa.schema([
        col("review_id", S, "Hash of what the label is of, of the label, and of who gave it when.", null=False),
        DATE,
        TRACE_ID,
        col("span_start", I32, "First character of the claim in the answer, from 0; null for an answer as a whole, and for a fact that shares its sentence with others."),
        col("span_end", I32, "One past the last character."),
        col("claim_id", S, "The claim, where the file names it; null otherwise, and for an answer as a whole."),
        col("label", S, "Of a claim: supported, partially_supported, unsupported, contradicted or cant_tell. Of an answer: right or wrong. Null of a grade."),
        col("misused", B, "Whether the claim cites chunks and none of them supports it, even in part; null where the person did not say."),
        col("reviewer", S, "Who gave the label; null where the file does not say."),
        col("reviewed_at", TS, "When; null where the file does not say."),
        col("sampling", S, "How it came to be reviewed: `random`, `misused`, `uncertain` or `disputed`; null where the file does not say, which counts as `random`."),
        col("adjudicated", B, "Whether it was given to settle what reviewers disagree on, and counts over their labels; null is no."),
        col("grade", S, "Which of the six grades of a grounded answer; null of a label."),
        col("value", F64, "The grade; null where it does not apply to the answer, and of a label."),
        col("source", S, "File that it was imported from.", null=False),
        col("imported_at", TS, "When its file was imported first.", null=False),
    ]),
    remade="",
    lost="the labels of a file. Where the file is still there, `leadline review import` takes it in again",
)  # fmt: skip

SENT = pa.struct([("place", S), ("status", S), ("at", TS)])

ALERTS = Table(
    "alerts",
    "one change of one number of one app and generator under one recipe",
    pa.schema([
        col("alert_id", S, "Hash of recipe, app, generator, number and date.", null=False),
        RECIPE,
        JUDGE_VERSION,
        col("date", pa.date32(), "Night on which the change was told.", null=False),
        APP,
        GENERATOR,
        col("number", S, "What changed: `groundedness`, `faithfulness`, `citation_groundedness`, `utilization`, `context_relevance`, `answer_relevance` or `answerability`.", null=False),
        col("direction", S, "`down` or `up`.", null=False),
        col("since", pa.date32(), "First of the nights that differ most clearly.", null=False),
        col("nights", I32, "How many these are, up to `date`.", null=False),
        col("nights_before", I32, "Nights that they were compared with.", null=False),
        col("baseline_mean", F64, "Mean of the nights before.", null=False),
        col("mean", F64, "Mean since.", null=False),
        col("change", F64, "mean − baseline_mean.", null=False),
        col("change_low", F64, "Lower end of its 95% interval.", null=False),
        col("change_high", F64, "Upper end of the interval.", null=False),
        col("between_sd", F64, "Standard deviation from night to night that sampling does not explain.", null=False),
        col("noise_sd", F64, "Standard deviation that the judge's own noise alone gives the change; null where it was never measured."),
        col("p", F64, "Probability of so large a difference on quiet nights.", null=False),
        col("p_limit", F64, "Below this it is told: `alerts.false_alerts` shared among nights, numbers and comparisons.", null=False),
        col("layer", S, "Layer whose share of the diagnoses moved most with it: `retrieval`, `generator` or `prompt`; null where none clearly did."),
        col("worst_trace_ids", STRINGS, "Traces of the night that lie farthest in its direction.", null=False),
        col("status", S, "`fired`, or `recovered` once the number has returned.", null=False),
        col("until", pa.date32(), "Last night of the change; null unless recovered."),
        col("recovered_on", pa.date32(), "Night on which the return was seen; null unless recovered."),
        col("announced_at", TS, "When Prefect got its artifact and event; null before."),
        col("sent_at", TS, "When the last of the configured places had been told; null before, and where none is configured."),
        col("sent", pa.list_(SENT), "Places that were told, by their names in the config: of the change (`fired`), or of its end (`recovered`).", null=False),
    ]),
    ("recipe", "date"),
    remade="",
    lost="what was told of the night, when and where. When the night is run again, its changes are found and told anew",
)  # fmt: skip

JUDGES = Table(
    "judges",
    "one version of a judge or grader",
    pa.schema([
        JUDGE_VERSION,
        col("name", S, "Name in its config.", null=False),
        col("kind", S, "Kind of judge or grader; `cascade` for several judges that are asked one after another.", null=False),
        col("definition", S, "Everything that is hashed into the version, as JSON.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a judge that no config names any more",
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
        col("scorer_versions", STRINGS, "Versions of what scores answers, chunks and answerability; their scores stand under these."),
        col("grader_version", S, "Version of what grades answers as a whole; null where the recipe names no grader."),
        col("definition", S, "Everything that is hashed into the recipe, as JSON; SQL files by their hashes.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a recipe that no config names any more",
)  # fmt: skip

CURRENT_RECIPES = Table(
    "current_recipes",
    "one application of one night under one recipe's name: which recipe, and so which judge, counts",
    pa.schema([
        DATE,
        col("recipe_name", S, "Name in the config.", null=False),
        APP,
        RECIPE,
        JUDGE_VERSION,
    ]),
    ("date",),
    remade="`leadline nightly` over its days",
    lost="recipes that no config names any more, which counted for the night",
)  # fmt: skip

PROMOTIONS = Table(
    "promotions",
    "one decision on a judge",
    pa.schema([
        col("promoted_at", TS, "When it was decided.", null=False),
        col("action", S, "`promote`, or `retire`: the judge is no longer to be used.", null=False),
        col("recipe_name", S, "Recipe of the config that it is promoted for; null for `retire`."),
        col("app", S, "Application that it is promoted for; null for all that have no judge of their own."),
        col("judge", S, "The judge's name.", null=False),
        JUDGE_VERSION,
        col("path", S, "Its file, relative to the config's folder where it lies below or beside it; null for `retire`."),
        col("since", pa.date32(), "First night that it counts for; null for `retire`."),
        col("reason", S, "Why.", null=False),
        col("pass_rate", F64, "Share of all conditions of the suite that `promotion.suite` names that it passed until then; null where the config required nothing."),
    ]),
    remade="",
    lost="a decision on a judge: the one before it counts again",
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
        col("recipes", STRINGS, "All recipes of the run but for shadows; `recipe` is the first of them."),
        JUDGE_VERSION,
        col("stages", pa.list_(STAGE), "Per stage: seconds, rows computed, rows found already there; tokens read, of these spared by a prefix cache, and written; of judging stages, whose verdicts and on how many GPUs.", null=False),
        col("traces_ingested", I64, "New traces.", null=False),
        col("rows_quarantined", I64, "Rows refused by this run.", null=False),
        col("verdicts_computed", I64, "Verdicts that the last try of each completed stage made; `verdicts` has all that were paid for.", null=False),
        col("tokens_in", I64, "Tokens read by models, those of `tokens_cached` included.", null=False),
        col("tokens_cached", I64, "Tokens that a prefix cache spared the models."),
        col("tokens_out", I64, "Tokens written by models.", null=False),
        col("gpu_seconds", F64, "Seconds for which the run held GPUs, times their number.", null=False),
        col("notes", STRINGS, "What the run wants a person to know.", null=False),
    ]),
    remade="",
    lost="the record of a run",
)  # fmt: skip

QUARANTINE = Table(
    "quarantine",
    "one refused row",
    pa.schema([
        col("source", S, "File, or table for results.", null=False),
        col("line", I64, "Line of the file, from 1; null for results."),
        col("trace_id", S, "Trace, where it could be read."),
        col("date", pa.date32(), "Night that the row counts for: the day of its timestamp, or else of its file (`{date}` in the source's path), or else the last day of the run that read it. Null for lines of people's labels."),
        col("stage", S, "`parse`, `gate`, `duplicate`, `results` or `reviews`.", null=False),
        col("reason", S, "Machine-readable reason.", null=False),
        col("detail", S, "What was found, without trace text."),
        col("raw", S, "The row as it came; bytes that are not UTF-8 are escaped as \\xNN.", null=False),
    ]),
    remade="",
    lost="refused rows, as they came and why",
)  # fmt: skip

REMOVALS = Table(
    "removals",
    "one trace whose text was asked to be removed",
    pa.schema([
        TRACE_ID,
        col("requested_at", TS, "When it was asked.", null=False),
        col("reason", S, "Why, in the words of who asked; null where they gave none."),
        col("removed_at", TS, "When its text was gone everywhere; null until then. A trace that was not here is refused when it comes."),
    ]),
    remade="",
    lost="a request to remove the text of a trace: a line of it that comes again is kept, text and all. Ask again with `leadline forget`",
)  # fmt: skip

SOURCES = Table(
    "sources",
    "one ingested state of one source file",
    pa.schema([
        col("source", S, "File or URL; null where its row was lost and its traces were adopted."),
        col("fingerprint", S, "Hash of its size and modification time or ETag; null as `source` is."),
        col("rows", I64, "Rows in it: ingested + known + quarantined.", null=False),
        col("ingested", I64, "New traces.", null=False),
        col("known", I64, "Traces that were already there, unchanged.", null=False),
        col("quarantined", I64, "Rows refused.", null=False),
        col("ingested_at", TS, "When.", null=False),
    ]),
    remade="",
    lost="which file its traces came from. The traces stay, and where the file is still there, it is read again",
)  # fmt: skip

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        TRACES, CLAIMS, PAIRS, VERDICTS, RELEVANCE, GRADES, CLAIM_RESULTS, CLAIM_PATTERNS, TRACE_SCORES, NIGHTLY_GROUNDEDNESS,
        NIGHTLY_UTILIZATION, NIGHTLY_RELEVANCE, NIGHTLY_GRADES, NIGHTLY_TRIAD, NIGHTLY_WATERFALL, NIGHTLY_PATTERNS, NIGHTLY_LANGUAGES, NIGHTLY_CITATIONS, NIGHTLY_REPEATS,
        TRACE_GRACE, NIGHTLY_GRACE, NIGHTLY_GRACE_SOURCES, NIGHTLY_GRACE_CONFUSION,
        NIGHTLY_CORRECTED, REVIEWS, JUDGE_NOISE, METAEVAL, ALERTS, JUDGES, PROMOTIONS, RECIPES, CURRENT_RECIPES, RUNS, QUARANTINE, REMOVALS, SOURCES,
    )
}  # fmt: skip
