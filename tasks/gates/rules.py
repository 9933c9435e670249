"""The rules of the gates, as data.

Each rule is declared once, as an expectation for Great Expectations and as a polars expression: the expression refuses
rows part by part, the expectation documents a night. A test holds both to the same verdict. Column names are those of
`frames.py`. A row is refused for the first rule of its suite that it breaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from tasks.core.config import Gates
from tasks.core.schemas import WATERFALL
from tasks.core.types import LABELS

CLAIM_STATUSES = ("judged", "na", "unjudged", "abstained")
GROUNDEDNESS_STATUSES = ("scored", "na", "unjudged", "abstained")
CONTEXT_STATUSES = ("scored", "na", "unjudged")
ANSWER_STATUSES = ("scored", "na", "unjudged")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule on the rows of a frame.

    Attributes:
        reason: Machine-readable reason, as it is stored in `quarantine`.
        expectation: Name of a class in `great_expectations.expectations`.
        options: Its arguments.
        broken: Whether a row breaks the rule; null counts as no.
        note: What is expected and why it matters, for the page of a result.
        shows: Columns whose values go into the detail of a refusal; never a column of text.
        limit: The limit in words; it follows the values in the detail of a refusal.
    """

    reason: str
    expectation: str
    options: Mapping[str, object]
    broken: pl.Expr
    note: str
    shows: tuple[str, ...]
    limit: str


def between(reason: str, column: str, low: float | None, high: float | None, note: str, *shows: str) -> Rule:
    """`low <= column <= high`, both ends allowed; null passes."""
    limit = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
    options = {"column": column, "min_value": low, "max_value": high}
    value = pl.col(column)
    bounds = ([value < low] if low is not None else []) + ([value > high] if high is not None else [])
    broken = pl.any_horizontal(bounds)
    return Rule(reason, "ExpectColumnValuesToBeBetween", options, broken, note, (column, *shows), f"must be {limit}")


def present(reason: str, column: str, note: str, *shows: str) -> Rule:
    """`column` is not null."""
    limit, broken = f"{column} must not be missing", pl.col(column).is_null()
    return Rule(reason, "ExpectColumnValuesToNotBeNull", {"column": column}, broken, note, shows, limit)


def one_of(reason: str, column: str, values: tuple[str, ...], note: str) -> Rule:
    """`column` is one of `values`; null passes."""
    options = {"column": column, "value_set": list(values)}
    limit, broken = f"must be one of {', '.join(values)}", ~pl.col(column).is_in(values)
    return Rule(reason, "ExpectColumnValuesToBeInSet", options, broken, note, (column,), limit)


def same(reason: str, left: str, right: str, note: str, *shows: str) -> Rule:
    """`left == right`; two nulls pass."""
    options = {"column_A": left, "column_B": right, "ignore_row_if": "both_values_are_missing"}
    limit, broken = f"{left} must equal {right}", pl.col(left).ne_missing(pl.col(right))
    return Rule(reason, "ExpectColumnPairValuesToBeEqual", options, broken, note, (left, right, *shows), limit)


def at_least(reason: str, larger: str, smaller: str, note: str, *shows: str) -> Rule:
    """`larger >= smaller`; a null on either side passes."""
    options = {"column_A": larger, "column_B": smaller, "or_equal": True, "ignore_row_if": "either_value_is_missing"}
    limit, broken = f"{larger} must be at least {smaller}", pl.col(larger) < pl.col(smaller)
    expectation = "ExpectColumnPairValuesAToBeGreaterThanB"
    return Rule(reason, expectation, options, broken, note, (larger, smaller, *shows), limit)


def unique(reason: str, columns: tuple[str, ...], note: str) -> Rule:
    """No two rows of a part agree in all of `columns`; every row of such a group breaks the rule.

    A row whose keys are all null passes.
    """
    keys = ["part", *columns]
    limit = f"{' and '.join(columns)} must be unique"
    broken = pl.struct(keys).is_duplicated() & pl.any_horizontal(pl.col(keys).is_not_null())
    return Rule(reason, "ExpectCompoundColumnsToBeUnique", {"column_list": keys}, broken, note, (), limit)


def trace_rules(gates: Gates) -> tuple[Rule, ...]:
    """Rules on new traces, one row each (`frames.trace_frame`)."""
    window = "timestamp_out_of_window"
    return (
        between(window, "days_before_range", None, gates.max_age_days,
                "The trace is not older than max_age_days before the last requested day.", "date"),
        between(window, "days_ahead", None, gates.max_ahead_days,
                "The trace is not later than max_ahead_days after today or the last requested day.", "date"),
        between("empty_question", "question_chars", 1, None, "The question holds more than white space."),
        between("question_too_long", "question_chars", None, gates.max_question_chars,
                "The question has at most max_question_chars characters."),
        between("answer_too_long", "answer_chars", None, gates.max_answer_chars,
                "The answer has at most max_answer_chars characters."),
        between("too_many_chunks", "chunks", None, gates.max_chunks, "The trace has at most max_chunks chunks."),
        between("chunk_too_long", "longest_chunk_chars", None, gates.max_chunk_chars,
                "No chunk has more than max_chunk_chars characters."),
        same("duplicate_chunk_id", "chunks", "distinct_chunk_ids",
             "Chunk ids are unique within their trace: a reference must name one chunk."),
    )  # fmt: skip


VOLUME_RULES = (
    at_least("volume_too_low", "traces", "low", "The night has at least median / volume_ratio traces.", "median"),
    at_least("volume_too_high", "high", "traces", "The night has at most median x volume_ratio traces.", "median"),
)

_ODDS = "The judge's probability lies in [0, 1]."
_SHARE = "The score lies in [0, 1]."

CLAIM_RULES = (
    present("claim_without_result", "status", "Every claim of the traces has a result."),
    between("result_without_claim", "claims", 1, None, "The result belongs to a claim."),
    unique("duplicate_result", ("claim_id", "judge_version"), "A claim has one result per judge version."),
    one_of("status_not_in_set", "status", CLAIM_STATUSES, "The status is one that readers know."),
    one_of("label_not_in_set", "label", tuple(x for x in LABELS if x != "abstained"),
           "The label is one that readers know."),
    same("label_does_not_match_status", "judged", "labeled", "A claim has a label exactly when it was judged."),
    between("score_out_of_bounds", "confidence", 0, 1, _ODDS),
    between("score_out_of_bounds", "p_supported", 0, 1, _ODDS),
    between("score_out_of_bounds", "p_contradicted", 0, 1, _ODDS),
    between("negative_count", "n_pairs_unjudged", 0, None, "The number of pairs without a label is a count."),
    at_least("counts_do_not_add_up", "n_pairs", "n_pairs_unjudged", "No more pairs lack a label than there are."),
)  # fmt: skip

SCORE_RULES = (
    present("trace_without_score", "groundedness_status", "Every trace is accounted for, scored or not."),
    between("score_without_trace", "traces", 1, None, "The score belongs to a trace."),
    unique("duplicate_score", ("trace_id", "judge_version"), "A trace is accounted for once."),
    one_of("status_not_in_set", "groundedness_status", GROUNDEDNESS_STATUSES, "The status is one that readers know."),
    one_of("status_not_in_set", "context_relevance_status", CONTEXT_STATUSES, "The status is one that readers know."),
    one_of("status_not_in_set", "answer_relevance_status", ANSWER_STATUSES, "The status is one that readers know."),
    one_of("status_not_in_set", "answerability_status", CONTEXT_STATUSES, "The status is one that readers know."),
    same("score_does_not_match_status", "scores_due", "scores_present",
         "A number is there exactly when its status is scored: N/A is neither 0 nor 1."),
    between("score_out_of_bounds", "groundedness_score", 0, 100, "The score lies in [0, 100]."),
    between("score_out_of_bounds", "faithfulness", 0, 1, _SHARE),
    between("score_out_of_bounds", "utilization", 0, 1, _SHARE),
    between("score_out_of_bounds", "citation_groundedness", 0, 1, _SHARE),
    between("score_out_of_bounds", "citation_recall", 0, 1, _SHARE),
    between("score_out_of_bounds", "citation_precision", 0, 1, _SHARE),
    between("score_out_of_bounds", "context_relevance", 0, 1, _SHARE),
    between("score_out_of_bounds", "answer_relevance", 0, 1, _SHARE),
    between("score_out_of_bounds", "answerability", 0, 1, _SHARE),
    between("score_out_of_bounds", "weakest_support", 0, 1, _ODDS),
    present("trace_not_in_waterfall", "waterfall", "Every trace stops at a stage of the waterfall, or is sent."),
    one_of("stage_not_in_set", "waterfall", WATERFALL, "The stage is one that readers know."),
    same("sent_without_signal", "signals_due", "signals_present",
         "A trace that is sent has all signals of the waterfall: uncertainty stops it."),
    between("negative_count", "smallest_count", 0, None, "No count is negative.", "smallest_count_is"),
    same("counts_do_not_add_up", "claims_judged", "claims_labeled",
         "Judged claims are those supported, partially supported, unsupported or contradicted."),
    same("counts_do_not_add_up", "claims_total", "claims_accounted",
         "All claims are judged, unjudged, abstained, or had nothing to be checked against."),
    same("counts_differ_from_results", "counts_stated", "counts_found",
         "The counts are those of the claim results of the trace, counted again."),
    at_least("counts_do_not_add_up", "chunks_retrieved", "chunks_used", "No more chunks are used than retrieved."),
    at_least("counts_do_not_add_up", "chunks_retrieved", "chunks_relevant",
             "No more chunks are relevant than retrieved."),
)  # fmt: skip
