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
        col("n_no_answer", I64, "N/A traces with an empty answer.", null=False),
        col("n_refusal", I64, "N/A traces whose answer only declines.", null=False),
        *interval("groundedness", "groundedness_score"),
        *[col(f"groundedness_p{q:02d}", F64, f"Percentile {q} of groundedness_score.") for q in PERCENTILES],
        *interval("faithfulness", "faithfulness"),
        col("claims_total", I64, "Claims.", null=False),
        col("claims_judged", I64, "Claims with a label.", null=False),
        col("claims_supported", I64, "Supported claims.", null=False),
        col("claims_partial", I64, "Partially supported claims.", null=False),
        col("claims_unsupported", I64, "Unsupported claims.", null=False),
        col("claims_contradicted", I64, "Contradicted claims.", null=False),
        col("claims_misused", I64, "Misused claims.", null=False),
        col("misused_share", F64, "Share of misused claims among the judged claims; null without any."),
        *ends("misused_share"),
        col("claims_to_check", I64, "Supported claims with a failure pattern.", null=False),
        col("to_check_share", F64, "Their share of the supported claims; null without any."),
        *ends("to_check_share"),
        col("claims_unjudged", I64, "Claims without a verdict.", null=False),
        col("claims_abstained", I64, "Claims on which the judge abstained.", null=False),
        col("claims_unread", I64, "Abstained claims in a language that no judge reads.", null=False),
        col("claims_escalated", I64, "Claims that were escalated to a further judge of the cascade."),
        *interval("citation_recall", "citation_recall"),
        *interval("citation_precision", "citation_precision"),
        col("citations_dangling", I64, "References to chunks that are not in the trace, counted for each claim they cover.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
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
        col("chunks_used", I64, "Used chunks of the scored traces.", null=False),
        col("chunks_relevant", I64, "Relevant chunks of the traces whose context relevance is scored.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
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
    made_of=("trace_scores",),
)  # fmt: skip

NIGHTLY_GRADES = Table(
    "nightly_grades",
    "one of the six grades of one night of one app and generator under one recipe with a grader",
    pa.schema([
        *NIGHTLY_KEY,
        col("grader_version", S, "Version of the grader; see `judges`.", null=False),
        col("grade", S, "One of the six; see `grades`.", null=False),
        col("n", I64, "Traces: the sum of the next five columns.", null=False),
        col("n_scored", I64, "Traces with the grade; only these enter the mean.", null=False),
        col("n_na", I64, "Traces to which it does not apply.", null=False),
        col("n_unparsable", I64, "Traces whose reply is not a valid grade.", null=False),
        col("n_failed", I64, "Traces without a reply.", null=False),
        col("n_ungraded", I64, "Traces that were not graded: until the next run after an outage or a spent budget; permanently if the text was removed before.", null=False),
        *interval("grade", "grade"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores", "grades"),
)  # fmt: skip

NIGHTLY_PATTERNS = Table(
    "nightly_patterns",
    "one failure pattern of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("pattern", S, "Name of the pattern; one row per pattern of the recipe.", null=False),
        col("n", I64, "Judged claims with it.", null=False),
        col("n_not_judged", I64, "N/A, unjudged and abstained claims with it; in no share.", null=False),
        col("claims_judged", I64, "Judged claims of the night, app and generator.", null=False),
        col("share", F64, "Share of the judged claims with it; null without judged claims."),
        *ends("share"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores", "claim_results"),
)  # fmt: skip

NIGHTLY_SLICES = Table(
    "nightly_slices",
    "one value of one slice (language, prompt version, tag) of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("slice", S, "`language` of claims, `prompt_version`, or `tags.` and the name of a tag, such as `tags.topic`.", null=False),
        col("value", S, "Its value; null for the rarer values together. A language is an ISO 639 code, `und` if unknown."),
        *N_COLUMNS,
        *interval("score", "groundedness_score, or citation_groundedness for recipes with method `citations`,"),
        col("claims", I64, "Claims in the language; for other slices, all claims of the traces.", null=False),
        col("claims_judged", I64, "Of these, claims with a label.", null=False),
        col("claims_supported", I64, "Of these, supported claims.", null=False),
        col("claims_misused", I64, "Of these, misused claims.", null=False),
        col("claims_unread", I64, "Of these, abstained claims because no judge reads the language.", null=False),
        col("claims_total", I64, "Claims of the night, app and generator.", null=False),
        col("share", F64, "claims / claims_total; null without claims."),
        *ends("share"),
    ]),
    ("recipe", "date"),
    made_of=("traces", "trace_scores", "claim_results"),
    lost="rows of tags that were removed with the texts",
)  # fmt: skip

NIGHTLY_TRIAD = Table(
    "nightly_triad",
    "one diagnosis of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("diagnosis", S, "`retrieval`, `generator`, `prompt`, `healthy`, `declined`, or `none` if a number is missing.", null=False),
        col("n", I64, "Traces with this diagnosis.", null=False),
        col("share", F64, "Share of the diagnosed traces of the night, app and generator; null for `none`."),
        *ends("share"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
)  # fmt: skip

WATERFALL = ("retrieval", "answerability", "faithfulness", "answer_relevance", "sent")

NIGHTLY_WATERFALL = Table(
    "nightly_waterfall",
    "one stage of the waterfall, or `sent`, of one night of one app and generator under one recipe",
    pa.schema([
        *NIGHTLY_KEY,
        col("position", I32, "Position in the order of stages, from 1.", null=False),
        col("stage", S, "`retrieval`, `answerability`, `faithfulness`, `answer_relevance`, or `sent` (passed all).", null=False),
        col("n", I64, "Traces of the night, app and generator.", null=False),
        col("n_reached", I64, "Traces that passed all earlier stages.", null=False),
        col("n_stopped", I64, "Traces that stop here; for `sent`, all that reached it.", null=False),
        col("n_uncertain", I64, "Traces that stop here because a number is missing.", null=False),
        col("share", F64, "n_stopped / n.", null=False),
        *ends("share"),
        col("n_reviewed", I64, "Reviewed answers among those that stop here, without answers that were selected for review because of their labels.", null=False),
        col("n_wrong", I64, "Wrong answers among these.", null=False),
        col("wrong_share", F64, "n_wrong / n_reviewed; null without reviewed answers."),
        *ends("wrong"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores", "reviews"),
)  # fmt: skip

GRACE_KEY = [RECIPE, DATE, APP, GENERATOR]

NIGHTLY_GRACE = Table(
    "nightly_grace",
    "one night of one app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("n", I64, "Traces.", null=False),
        col("n_scored", I64, "Traces with an annotated right source; only these enter the other numbers.", null=False),
        col("n_na", I64, "Traces without one.", null=False),
        col("hits", I64, "Traces whose answer cites a right source.", null=False),
        col("not_retrieved", I64, "Misses: no right source was retrieved.", null=False),
        col("retrieved_not_cited", I64, "Misses: one was retrieved, and the answer's references all dangle.", null=False),
        col("cited_another", I64, "Misses: one was retrieved, and the answer cites only other chunks.", null=False),
        col("cited_nothing", I64, "Misses: one was retrieved, and the answer has no reference.", null=False),
        col("accuracy", F64, "hits / n_scored; null without annotations."),
        *ends("accuracy"),
        col("precision_micro", F64, "Share of right citations among all citations of sources; null without citations."),
        *ends("precision_micro"),
        col("recall_micro", F64, "Share of cited sources among all right sources that should be cited."),
        *ends("recall_micro"),
        col("f1_micro", F64, "2 · right / (citations + sources that should be cited)."),
        *ends("f1_micro"),
        col("precision_macro", F64, "Mean precision over the right sources that were cited."),
        *ends("precision_macro"),
        col("recall_macro", F64, "Mean recall over the right sources."),
        *ends("recall_macro"),
        col("f1_macro", F64, "Mean F1 over the right sources."),
        *ends("f1_macro"),
        col("sources", I64, "Sources that are right for some trace.", null=False),
        col("sources_precision", I64, "Of these, sources with a precision; the others were never cited.", null=False),
        col("sources_recall", I64, "Of these, sources with a recall; for the others, another right source was always cited.", null=False),
        col("sources_f1", I64, "Of these, sources with an F1.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("trace_grace",),
)  # fmt: skip

NIGHTLY_GRACE_SOURCES = Table(
    "nightly_grace_sources",
    "one source that is right or cited in an annotated trace of one night, app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("source", S, "Chunk id, or document id.", null=False),
        col("support", I64, "Traces for which it is a right source.", null=False),
        col("true_positives", I64, "Of these, traces whose answer cites it.", null=False),
        col("false_positives", I64, "Annotated traces whose answer cites it although it is not right.", null=False),
        col("false_negatives", I64, "Traces for which it is a right source and whose answer cites no right source.", null=False),
        col("precision", F64, "true_positives / (true_positives + false_positives); null if no answer cites it."),
        *ends("precision"),
        col("recall", F64, "true_positives / (true_positives + false_negatives); null if no answer should cite it."),
        *ends("recall"),
        col("f1", F64, "2 · true_positives / (2 · true_positives + false_positives + false_negatives)."),
        *ends("f1"),
    ]),
    ("recipe", "date"),
    made_of=("trace_grace",),
)  # fmt: skip

NIGHTLY_GRACE_CONFUSION = Table(
    "nightly_grace_confusion",
    "one right source and one source that was cited for it, in one night of one app and generator under one recipe",
    pa.schema([
        *GRACE_KEY,
        col("gold", S, "The right source.", null=False),
        col("cited", S, "The cited source: the right source in a hit, another source in a miss; null without citations."),
        col("n", I64, "Traces; a trace that cites several sources counts for each.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("trace_grace",),
)  # fmt: skip

NIGHTLY_SESSIONS = Table(
    "nightly_sessions",
    "one night of one app and generator under one recipe, for traces with a session",
    pa.schema([
        *NIGHTLY_KEY,
        col("n", I64, "Sessions (conversations) with a trace of that night.", null=False),
        col("n_scored", I64, "Sessions with a scored trace and no unjudged one; only these enter the shares.", null=False),
        col("n_na", I64, "Sessions to whose traces groundedness does not apply.", null=False),
        col("n_unjudged", I64, "Sessions with an unjudged trace.", null=False),
        col("n_abstained", I64, "Sessions without a scored trace, on one of which the judge abstained.", null=False),
        col("traces", I64, "Their traces: turns of the conversations.", null=False),
        col("n_ungrounded", I64, "Scored sessions with an unsupported or contradicted claim in any answer.", null=False),
        col("ungrounded_share", F64, "Their share of the scored sessions; null without any."),
        *ends("ungrounded_share"),
        col("n_misused", I64, "Scored sessions with a misused claim in any answer.", null=False),
        col("misused_share", F64, "Their share of the scored sessions; null without any."),
        *ends("misused_share"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
)  # fmt: skip

NIGHTLY_REPEATS = Table(
    "nightly_repeats",
    "one number of one night of one app and generator under one recipe: groundedness and faithfulness, or citation groundedness for recipes with method `citations`",
    pa.schema([
        *NIGHTLY_KEY,
        col("number", S, "`groundedness`, `faithfulness` or `citation_groundedness`.", null=False),
        col("questions", I64, "Distinct questions of the night.", null=False),
        col("questions_repeated", I64, "Of these, questions that were asked more than once.", null=False),
        col("n", I64, "Traces of the repeated questions.", null=False),
        col("n_scored", I64, "Of these, traces with the number.", null=False),
        col("n_na", I64, "Traces to which it does not apply.", null=False),
        col("n_unjudged", I64, "Traces to which it applies but that have no verdict.", null=False),
        col("n_abstained", I64, "Traces on which the judge abstained.", null=False),
        col("questions_compared", I64, "Questions with at least two scored traces; only these enter the numbers.", null=False),
        col("mean", F64, "Mean over these questions of their means."),
        *ends("mean"),
        col("spread", F64, "Mean over these questions of the standard deviation of their repeats."),
        *ends("spread"),
        col("range", F64, "Mean over these questions of highest − lowest."),
        *ends("range"),
        col("share_repeats", F64, "Share of the variance that comes from repeats, W / (W + B) of one-way random effects; null with fewer than two such questions, or without any variance."),
        *ends("share_repeats", "null with fewer than three, or if it depends on one"),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
)  # fmt: skip

NIGHTLY_CITATIONS = Table(
    "nightly_citations",
    "one night of one app and generator under one recipe with method `citations`",
    pa.schema([
        *NIGHTLY_KEY,
        *N_COLUMNS,
        *interval("citation_groundedness", "citation_groundedness"),
        *[col(f"citation_groundedness_p{q:02d}", F64, f"Percentile {q} of citation_groundedness.") for q in PERCENTILES],
        col("segments_total", I64, "Segments of the answers to which the number applies.", null=False),
        col("segments_judged", I64, "Segments with a label.", null=False),
        col("segments_true", I64, "True segments of both passes.", null=False),
        col("segments_cited", I64, "Segments with references, judged in the first pass.", null=False),
        col("segments_cited_judged", I64, "Of these, segments with a label.", null=False),
        col("segments_cited_true", I64, "Of these, true segments.", null=False),
        col("segments_dangling", I64, "Segments whose references all dangle; they count as judged and false.", null=False),
        col("segments_unjudged", I64, "Segments without a verdict, and uncited segments that wait for a verdict of the first pass.", null=False),
        col("segments_abstained", I64, "Segments on which the judge abstained.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("trace_scores",),
)  # fmt: skip

NIGHTLY_CORRECTED = Table(
    "nightly_corrected",
    "one number of one night of one app and generator under one recipe, corrected by people's labels of at least two questions",
    pa.schema([
        *NIGHTLY_KEY,
        col("number", S, "`groundedness` or `faithfulness`.", null=False),
        col("n_scored", I64, "Traces of the night with the number.", null=False),
        col("raw_mean", F64, "Their mean from the judge's labels.", null=False),
        col("n_reviewed", I64, "Traces of the app and generator, of any night, with the number from people's labels too, without traces that were selected for review because of their labels.", null=False),
        col("n_reviewed_questions", I64, "Their distinct questions.", null=False),
        col("rectifier", F64, "Their mean of the number from people's labels minus the number from the judge's.", null=False),
        col("corrected_mean", F64, "raw_mean + rectifier, limited to the scale.", null=False),
        col("corrected_low", F64, "Lower end of its 95% interval, which includes the sampling of the night's questions and of the reviewed ones.", null=False),
        col("corrected_high", F64, "Upper end of the interval.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("traces", "claims", "claim_results", "trace_scores", "reviews"),
)  # fmt: skip

NIGHTLY_TRUST = Table(
    "nightly_trust",
    "one night of one app under one recipe: how far to trust its judge",
    pa.schema([
        RECIPE,
        DATE,
        APP,
        JUDGE_VERSION,
        col("n_labels", I64, "Claims of the app, of any night, with a label by the judge and one by people, without claims that were selected for review because of their labels.", null=False),
        col("n_questions", I64, "Their distinct questions.", null=False),
        col("accuracy", F64, "Balanced accuracy of the judge on them, supported against the rest, with people's labels as the truth; null where people gave one side only."),
        *ends("accuracy"),
        col("kappa", F64, "Cohen's kappa, supported against the rest; null where all labels are equal."),
        *ends("kappa"),
        col("n_to_check", I64, "Of n_labels, claims to check: the judge supports them, and they show a failure pattern.", null=False),
        col("n_to_check_wrong", I64, "Of these, claims that people do not label supported.", null=False),
        col("to_check_wrong_share", F64, "n_to_check_wrong / n_to_check; null without any."),
        *ends("to_check_wrong_share"),
        col("n_unmarked", I64, "Of n_labels, claims that the judge supports and that show no failure pattern.", null=False),
        col("n_unmarked_wrong", I64, "Of these, claims that people do not label supported.", null=False),
        col("unmarked_wrong_share", F64, "n_unmarked_wrong / n_unmarked; null without any."),
        *ends("unmarked_wrong_share"),
        col("n_claims", I64, "Claims of the night with a confidence.", null=False),
        col("n_unsure", I64, "Of these, claims with a confidence below 0.6.", null=False),
        col("n_unread", I64, "Claims of the night in languages that the judge does not read.", null=False),
    ]),
    ("recipe", "date"),
    made_of=("claims", "claim_results", "trace_scores", "reviews"),
)  # fmt: skip
