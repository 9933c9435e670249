"""The narrow frames that the gates check: ids, lengths, counts and statuses, never a text.

Great Expectations stores samples of the values that break a rule, so the frames contain no text. `rules.py` decides
which rows are refused.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final

import polars as pl
import pyarrow as pa

from tasks.store.lake import frame

WHITE_SPACE: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
MAX_WORD = 24  # a longer status or label is replaced by its length: it may contain a reply of the judge

DUE: Final[Mapping[str, str]] = {
    "groundedness_score": "groundedness_status",
    "faithfulness": "groundedness_status",
    "utilization": "groundedness_status",
    "chunks_used": "groundedness_status",
    "citation_groundedness": "citation_status",
    "context_relevance": "context_relevance_status",
    "chunks_relevant": "context_relevance_status",
    "answer_relevance": "answer_relevance_status",
    "answerability": "answerability_status",
}
"""Maps each score or count to the status that says whether the trace has it."""

SIGNALS: Final = ("context_relevance", "answerability", "weakest_support", "answer_relevance")
"""Scores that a trace needs to be sent."""

SCORES: Final = (
    "groundedness_score", "faithfulness", "utilization", "context_relevance", "answer_relevance", "answerability",
    "citation_groundedness", "citation_recall", "citation_precision", "weakest_support",
)  # fmt: skip
COUNTS: Final = (
    "claims_total", "claims_judged", "claims_supported", "claims_partial", "claims_unsupported",
    "claims_contradicted", "claims_misused", "claims_unjudged", "claims_abstained", "claims_unread",
    "claims_to_check", "claims_stopping", "refusals", "citations_dangling", "chunks_retrieved",
    "chunks_used", "chunks_relevant",
)  # fmt: skip
LABELED: Final = {
    "claims_supported": "supported",
    "claims_partial": "partially_supported",
    "claims_unsupported": "unsupported",
    "claims_contradicted": "contradicted",
}
STATED: Final = (
    "claims_total", *LABELED, "claims_misused", "claims_unjudged", "claims_abstained", "claims_to_check",
)  # fmt: skip


def trace_frame(table: pa.Table, last_day: date, today: date) -> pl.DataFrame:
    """Lengths, counts and days of new traces.

    Args:
        table: Columns of `TRACES.stored` (others are ignored).
        last_day: Last requested day of the run, UTC.
        today: The day on which the run happens, UTC.

    Returns:
        One row per row of `table`, in its order. Questions and answers are measured without white space around them:
        a blank one has 0 characters. Days are counted back from `last_day`, and ahead of it or of `today`.
    """
    chunks, chunk, day = pl.col("chunks").list, pl.element().struct.field, pl.col("timestamp").dt.date()
    return _frame(table, "trace_id", "timestamp", "question", "answer", "chunks").select(
        "trace_id",
        date=day,
        days_before_range=(pl.lit(last_day) - day).dt.total_days(),
        days_ahead=(day - max(last_day, today)).dt.total_days(),
        question_chars=pl.col("question").str.strip_chars(WHITE_SPACE).str.len_chars(),
        answer_chars=pl.col("answer").str.strip_chars(WHITE_SPACE).str.len_chars(),
        chunks=chunks.len(),
        distinct_chunk_ids=chunks.eval(chunk("chunk_id")).list.n_unique(),
        longest_chunk_chars=chunks.eval(chunk("text").str.len_chars()).list.max().fill_null(0),
    )


def volume_frame(counts: Mapping[date, int], median: float, ratio: float) -> pl.DataFrame:
    """One row per night: its traces, and the bounds of what is usual."""
    nights = pl.DataFrame({"date": list(counts), "traces": list(counts.values())}, {"date": pl.Date, "traces": float})
    low, high = median / ratio, median * ratio
    return nights.with_columns(low=pl.lit(low), high=pl.lit(high), median=pl.lit(float(median)))


def claim_frame(claims: pa.Table, claim_results: pa.Table, traces: pa.Table) -> pl.DataFrame:
    """One row per claim result, then one per claim of `traces` that has none (all but its ids is null).

    Args:
        claims: `claim_id`, `trace_id`.
        claim_results: Columns of `CLAIM_RESULTS`.
        traces: `trace_id`.
    """
    numbers = ("confidence", "p_supported", "p_contradicted")
    ids, counts = ("claim_id", "trace_id", "judge_version"), ("n_pairs", "n_pairs_unjudged")
    results = _frame(claim_results, *ids, "status", "label", *numbers, *counts)
    cut = _frame(claims, "claim_id", "trace_id").with_columns(claims=pl.lit(1))
    found = results.select(
        *ids,
        *_words("status", "label"),
        claims=pl.col("claim_id").is_in(cut["claim_id"].implode()).cast(pl.Int32),
        judged=pl.col("status") == "judged",
        labeled=pl.col("label").is_not_null(),
        **_numbers(numbers),
        **{name: pl.col(name) for name in counts},
    )
    missing = cut.join(_frame(traces, "trace_id"), on="trace_id", how="semi").join(results, on="claim_id", how="anti")
    return pl.concat([found, missing], how="diagonal")


def score_frame(claim_results: pa.Table, trace_scores: pa.Table, traces: pa.Table) -> pl.DataFrame:
    """One row per trace score, then one per trace that has none (all but its id is null).

    Args:
        claim_results: Columns of `CLAIM_RESULTS`.
        trace_scores: Columns of `TRACE_SCORES`.
        traces: `trace_id`.
    """
    statuses = tuple(dict.fromkeys(DUE.values()))
    used = dict.fromkeys(("trace_id", "judge_version", *statuses, *DUE, *SCORES, *COUNTS, "waterfall"))
    scores, expected = _frame(trace_scores, *used), _frame(traces, "trace_id").with_columns(traces=pl.lit(1))
    counted = _counted(claim_results)
    zero = {name: pl.col(name).fill_null(0) for name in COUNTS}
    smallest = pl.min_horizontal(zero.values())
    sent = pl.col("waterfall") == "sent"
    accounted = zero["claims_judged"] + zero["claims_unjudged"] + zero["claims_abstained"] + pl.col("found_na")
    found = (
        scores.join(counted, on="trace_id", how="left", maintain_order="left")
        .with_columns(pl.col("^found_.*$").fill_null(0))
        .select(
            "trace_id",
            "judge_version",
            *_words(*statuses, "waterfall"),
            traces=pl.col("trace_id").is_in(expected["trace_id"].implode()).cast(pl.Int32),
            scores_due=_names({name: pl.col(status) == "scored" for name, status in DUE.items()}),
            scores_present=_names({name: pl.col(name).is_not_null() for name in DUE}),
            **_numbers(SCORES),
            signals_due=_names(dict.fromkeys(SIGNALS, sent)),
            signals_present=_names({name: sent & pl.col(name).is_not_null() for name in SIGNALS}),
            smallest_count=smallest,
            smallest_count_is=pl.coalesce([pl.when(n == smallest).then(pl.lit(name)) for name, n in zero.items()]),
            claims_judged="claims_judged",
            claims_total="claims_total",
            chunks_retrieved="chunks_retrieved",
            chunks_used="chunks_used",
            chunks_relevant="chunks_relevant",
            claims_labeled=pl.sum_horizontal(zero[name] for name in LABELED),
            claims_accounted=accounted,
            counts_stated=_listed({name: zero[name] for name in STATED}),
            counts_found=_listed({name: pl.col(f"found_{name}") for name in STATED}),
        )
    )
    return pl.concat([found, expected.join(scores, on="trace_id", how="anti")], how="diagonal")


def _frame(table: pa.Table, *columns: str) -> pl.DataFrame:
    return frame(table.select(columns))


def _counted(claim_results: pa.Table) -> pl.DataFrame:
    """The counts of `STATED`, and `na`, per trace id, counted from the claim results as `found_<count>`."""
    status, label = pl.col("status"), pl.col("label")
    masks = {
        "claims_total": pl.col("claim_id").is_not_null(),
        **{name: label == value for name, value in LABELED.items()},
        "claims_misused": pl.col("misused") & label.is_not_null(),
        "claims_unjudged": status == "unjudged",
        "claims_abstained": status == "abstained",
        "claims_to_check": pl.col("to_check"),
        "na": status == "na",
    }
    rows = _frame(claim_results, "trace_id", "claim_id", "status", "label", "misused", "to_check")
    return rows.group_by("trace_id").agg(mask.sum().alias(f"found_{name}") for name, mask in masks.items())


def _words(*columns: str) -> list[pl.Expr]:
    """Statuses or labels; one that is too long to be either is replaced by its length."""
    chars = {name: pl.col(name).str.len_chars() for name in columns}
    return [
        pl.when(n > MAX_WORD).then(pl.format("<{} characters>", n)).otherwise(pl.col(name)).alias(name)
        for name, n in chars.items()
    ]


def _numbers(columns: Iterable[str]) -> dict[str, pl.Expr]:
    """Replace NaN by infinity, because pandas treats NaN as null and a null would pass the rules."""
    return {name: pl.col(name).fill_nan(float("inf")) for name in columns}


def _names(flags: Mapping[str, pl.Expr]) -> pl.Expr:
    """Per row, the names whose flag is set, in order."""
    named = [pl.when(flag).then(pl.lit(name)) for name, flag in flags.items()]
    return pl.concat_str(named, separator=" ", ignore_nulls=True)


def _listed(counts: Mapping[str, pl.Expr]) -> pl.Expr:
    """Per row, all counts in one line: `total=4 supported=3 …`."""
    return pl.format(" ".join(f"{name.removeprefix('claims_')}={{}}" for name in counts), *counts.values())
