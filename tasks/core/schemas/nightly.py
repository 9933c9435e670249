"""Tables with a row per night, application and generator."""

import pyarrow as pa

from tasks.core.schemas.columns import (
    APP,
    DATE,
    F64,
    GENERATOR,
    I32,
    I64,
    JUDGE_VERSION,
    N_COLUMNS,
    RECIPE,
    S,
    Table,
    col,
    ends,
    interval,
)

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
        col("segments_cited", I64, "Segments with references: those of the first pass.", null=False),
        col("segments_cited_judged", I64, "Those of them that have a label.", null=False),
        col("segments_cited_true", I64, "Those of them found true.", null=False),
        col("segments_dangling", I64, "Segments of which every reference dangles; they count as judged, and not as true.", null=False),
        col("segments_unjudged", I64, "Segments without a verdict, and uncited ones that wait for one of the first pass.", null=False),
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
