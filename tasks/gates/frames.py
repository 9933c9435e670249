"""The narrow tables that the gates look at: ids, lengths, counts and statuses, never a text.

Great Expectations keeps samples of what it finds, so whatever must not be kept must not get into these tables.
All of it is vectorised; nothing here decides what is refused (`gates_rules`) or runs a check (`gates_engine`).
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BATCH_ROWS = 65_536  # bounds the memory of trimmed copies of the texts
MAX_WORD = 24  # a longer status or label is told by its length: it may be a reply of the judge that went astray

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
"""Number of a trace -> the status that says whether the trace has it."""

SIGNALS: Final = ("context_relevance", "answerability", "weakest_support", "answer_relevance")
"""What a trace needs to be sent."""

COUNTS: Final = (
    "claims_total", "claims_judged", "claims_supported", "claims_partial", "claims_unsupported",
    "claims_contradicted", "claims_misused", "claims_unjudged", "claims_abstained", "claims_unread",
    "claims_to_check", "claims_stopping", "refusals", "citations_dangling", "chunks_retrieved",
    "chunks_used", "chunks_relevant",
)  # fmt: skip
LABELLED: Final = {
    "claims_supported": "supported",
    "claims_partial": "partially_supported",
    "claims_unsupported": "unsupported",
    "claims_contradicted": "contradicted",
}
STATED: Final = (
    "claims_total", *LABELLED, "claims_misused", "claims_unjudged", "claims_abstained", "claims_to_check",
)  # fmt: skip

NARROW = pa.schema([
    ("row", pa.int64()),
    ("trace_id", pa.string()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("date", pa.date32()),
    ("question_chars", pa.int64()),
    ("answer_chars", pa.int64()),
    ("chunks", pa.int64()),
    ("distinct_chunk_ids", pa.int64()),
    ("longest_chunk_chars", pa.int64()),
])  # fmt: skip


def narrow_traces(table: pa.Table) -> pa.Table:
    """What the gate on traces looks at.

    Args:
        table: Columns of `TRACES.stored` (others are ignored).

    Returns:
        One row per row of `table`, in its order: `row` from 0, ids, the day in UTC, and characters and counts.
        Questions and answers are measured without white space around them: a blank one has 0 characters.
    """
    parts = [_narrow_batch(batch) for batch in table.to_batches(max_chunksize=BATCH_ROWS)]
    if not parts:
        return NARROW.empty_table()
    narrow = pa.concat_tables(parts)
    return narrow.add_column(0, "row", pa.array(np.arange(narrow.num_rows), pa.int64())).cast(NARROW)


def _narrow_batch(batch: pa.RecordBatch) -> pa.Table:
    rows = batch.num_rows
    chunks = batch.column("chunks")
    elements = pc.list_flatten(chunks)
    per_trace = (
        pa.table(
            {
                "trace": pc.list_parent_indices(chunks),
                "chunk_id": pc.struct_field(elements, "chunk_id"),
                "chars": pc.utf8_length(pc.struct_field(elements, "text")),
            }
        )
        .group_by("trace")
        .aggregate([("chunk_id", "count_distinct"), ("chars", "max")])
    )
    trace = per_trace["trace"].to_numpy()

    def scattered(column: str) -> NDArray[np.int64]:
        """One value per row of the batch; 0 for a trace without chunks."""
        values = np.zeros(rows, np.int64)
        values[trace] = pc.fill_null(per_trace[column], 0).to_numpy()
        return values

    return pa.table({
        "trace_id": batch.column("trace_id"),
        "timestamp": batch.column("timestamp"),
        "date": batch.column("timestamp").cast(pa.date32()),
        "question_chars": pc.utf8_length(pc.utf8_trim_whitespace(batch.column("question"))),
        "answer_chars": pc.utf8_length(pc.utf8_trim_whitespace(batch.column("answer"))),
        "chunks": pc.list_value_length(chunks),
        "distinct_chunk_ids": scattered("chunk_id_count_distinct"),
        "longest_chunk_chars": scattered("chars_max"),
    })  # fmt: skip


def trace_frame(narrow: pa.Table, last_day: date, today: date) -> pa.Table:
    """`narrow` with its days counted from the range asked for: before its last day, and ahead of it or of today."""
    day = narrow["date"].cast(pa.int32()).cast(pa.int64())
    epoch = date(1970, 1, 1).toordinal()
    before = pc.subtract(last_day.toordinal() - epoch, day)
    ahead = pc.subtract(day, max(last_day, today).toordinal() - epoch)
    return narrow.append_column("days_before_range", before).append_column("days_ahead", ahead)


def volume_frame(counts: Mapping[date, int], median: float, ratio: float) -> pa.Table:
    """One row per night: its traces, and the bounds of what is usual."""
    n = len(counts)
    return pa.table({
        "date": pa.array(counts.keys(), pa.date32()),
        "traces": pa.array(counts.values(), pa.float64()),
        "low": pa.array([median / ratio] * n, pa.float64()),
        "high": pa.array([median * ratio] * n, pa.float64()),
        "median": pa.array([median] * n, pa.float64()),
    })  # fmt: skip


def claim_frame(claims: pa.Table, claim_results: pa.Table, traces: pa.Table) -> pa.Table:
    """One row per claim result, then one per claim of `traces` that has none (all but its ids are null).

    Args:
        claims: `claim_id`, `trace_id`.
        claim_results: Columns of `CLAIM_RESULTS`.
        traces: `trace_id`.
    """
    known = pc.is_in(claim_results["claim_id"], value_set=claims["claim_id"].combine_chunks())
    found = pa.table({
        **{name: claim_results[name] for name in ("claim_id", "trace_id", "judge_version")},
        "status": _word(claim_results["status"]),
        "label": _word(claim_results["label"]),
        "claims": known.cast(pa.int64()),
        "judged": pc.equal(claim_results["status"], "judged"),
        "labelled": claim_results["label"].is_valid(),
        **{name: _number(claim_results[name]) for name in ("confidence", "p_supported", "p_contradicted")},
        **{name: claim_results[name].cast(pa.int64()) for name in ("n_pairs", "n_pairs_unjudged")},
    })  # fmt: skip
    wanted = claims.select(["claim_id", "trace_id"]).filter(_is_in(claims["trace_id"], traces["trace_id"]))
    missing = wanted.filter(pc.invert(_is_in(wanted["claim_id"], claim_results["claim_id"])))
    return _stack(found, missing.append_column("claims", pa.array(np.ones(missing.num_rows), pa.int64())))


def score_frame(claim_results: pa.Table, trace_scores: pa.Table, traces: pa.Table) -> pa.Table:
    """One row per trace score, then one per trace that has none (all but its id is null).

    Args:
        claim_results: Columns of `CLAIM_RESULTS`.
        trace_scores: Columns of `TRACE_SCORES`.
        traces: `trace_id`.
    """
    ints = {name: trace_scores[name].cast(pa.int64()) for name in COUNTS}
    counted = _counted(claim_results, trace_scores["trace_id"])
    zero = {name: pc.fill_null(ints[name], 0) for name in COUNTS}
    accounted = _sum([zero["claims_judged"], zero["claims_unjudged"], zero["claims_abstained"], counted["na"]])
    matrix = np.stack([zero[name].to_numpy() for name in COUNTS])
    smallest = np.argmin(matrix, axis=0)
    words = {name: _word(trace_scores[name]) for name in dict.fromkeys(DUE.values())}
    sent = pc.equal(trace_scores["waterfall"], "sent")
    found = pa.table({
        "trace_id": trace_scores["trace_id"],
        "judge_version": trace_scores["judge_version"],
        **words,
        "traces": _is_in(trace_scores["trace_id"], traces["trace_id"]).cast(pa.int64()),
        "scores_due": _names({name: pc.equal(words[status], "scored") for name, status in DUE.items()}),
        "scores_present": _names({name: trace_scores[name].is_valid() for name in DUE}),
        **{
            name: _number(trace_scores[name])
            for name in (
                "groundedness_score", "faithfulness", "utilization", "context_relevance", "answer_relevance",
                "answerability", "citation_groundedness", "citation_recall", "citation_precision", "weakest_support",
            )
        },
        "waterfall": _word(trace_scores["waterfall"]),
        "signals_due": _names(dict.fromkeys(SIGNALS, sent)),
        "signals_present": _names({name: pc.and_(sent, trace_scores[name].is_valid()) for name in SIGNALS}),
        "smallest_count": matrix.min(axis=0),
        "smallest_count_is": pa.array(COUNTS).take(pa.array(smallest)),
        **{name: ints[name] for name in ("claims_judged", "claims_total", "chunks_retrieved")},
        **{name: ints[name] for name in ("chunks_used", "chunks_relevant")},
        "claims_labelled": _sum([zero[name] for name in LABELLED]),
        "claims_accounted": accounted,
        "counts_stated": _ledger({name: zero[name] for name in STATED}),
        "counts_found": _ledger({name: counted[name] for name in STATED}),
    })  # fmt: skip
    missing = traces.select(["trace_id"]).filter(pc.invert(_is_in(traces["trace_id"], trace_scores["trace_id"])))
    return _stack(found, missing.append_column("traces", pa.array(np.ones(missing.num_rows), pa.int64())))


def _counted(claim_results: pa.Table, trace_ids: Any) -> dict[str, Any]:  # noqa: ANN401 - a chunked array of strings
    """The counts of `STATED`, and `na`, per trace id, counted from the claim results."""
    place = pc.index_in(claim_results["trace_id"], value_set=trace_ids.combine_chunks())
    status, label = claim_results["status"], claim_results["label"]
    masks = {
        "claims_total": pc.is_valid(claim_results["claim_id"]),
        **{name: pc.equal(label, value) for name, value in LABELLED.items()},
        "claims_misused": pc.and_(claim_results["misused"], claim_results["label"].is_valid()),
        "claims_unjudged": pc.equal(status, "unjudged"),
        "claims_abstained": pc.equal(status, "abstained"),
        "claims_to_check": claim_results["to_check"],
        "na": pc.equal(status, "na"),
    }
    counts = {}
    for name, mask in masks.items():
        where = place.filter(pc.and_(pc.fill_null(mask, fill_value=False), pc.is_valid(place))).to_numpy()
        counts[name] = pa.array(np.bincount(where, minlength=len(trace_ids)), pa.int64())
    return counts


def _is_in(values: Any, among: Any) -> Any:  # noqa: ANN401 - chunked arrays
    return pc.is_in(values, value_set=among.combine_chunks())


def _word(values: Any) -> Any:  # noqa: ANN401 - a chunked array of strings
    """A status or label; one that is too long to be either is replaced by its length."""
    chars = pc.utf8_length(values)
    told = pc.binary_join_element_wise("<", chars.cast(pa.string()), " characters>", "")
    return pc.if_else(pc.greater(chars, MAX_WORD), told, values)


def _number(values: Any) -> Any:  # noqa: ANN401 - a chunked array of doubles
    """NaN made infinite: pandas takes NaN for null, and a NaN must not pass as "no value"."""
    return pc.if_else(pc.is_nan(values), np.inf, values)


def _names(flags: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a chunked array of strings
    """Per row, the names whose flag is set, in order, separated by spaces."""
    words = [pc.if_else(pc.fill_null(flag, fill_value=False), f"{name} ", "") for name, flag in flags.items()]
    return pc.binary_join_element_wise(*words, "")


def _ledger(counts: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a chunked array of strings
    """Per row, all counts in one line: `total=4 supported=3 …`."""
    parts: list[Any] = []
    for name, values in counts.items():
        parts += [f" {name.removeprefix('claims_')}=", values.cast(pa.string())]
    return pc.utf8_ltrim(pc.binary_join_element_wise(*parts, ""), " ")


def _sum(columns: Sequence[Any]) -> Any:  # noqa: ANN401 - a chunked array of integers
    total = columns[0]
    for column in columns[1:]:
        total = pc.add(total, column)
    return total


def _stack(found: pa.Table, missing: pa.Table) -> pa.Table:
    return pa.concat_tables([found, missing], promote_options="default")
