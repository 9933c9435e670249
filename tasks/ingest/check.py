"""Check a source before a nightly run uses it: which fields are found, and why others are missing.

The check reads the source and stores nothing. Its results contain counts, names of spans and keys, and trace ids, but
never a text.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from itertools import islice
from typing import Any

import msgspec

from tasks import extractors
from tasks.core.config import Gates
from tasks.core.errors import SourceError
from tasks.core.types import Answer, Extractor, Trace
from tasks.extractors.cut.citations import CutSettings
from tasks.gates.gates import GateKeeper
from tasks.sources import NORMAL, Batch, Reject, Source, SourceFile
from tasks.sources.reading.rows import to_table
from tasks.sources.spans import Assembled, Span, SpanSource, assemble
from tasks.sources.tabular import TabularSource

NAMED = 3  # example traces for each cause
AT_ONCE = 500  # traces whose answers are split into claims in one batch
LEAST = {"trace": 0.95, "chunks": 0.5}  # minimum share of traces with each field

FIELDS = ("trace", "question", "answer", "chunks", "prompt", "ids", "timestamp", "citations", "session")
# The missing field for each reason to refuse a row; any other reason counts for the field `trace`.
_LACKS = {
    **dict.fromkeys(("no_question", "question_holds_context", "empty_question"), "question"),
    "no_answer": "answer",
    "no_chunk_text": "chunks",
    **dict.fromkeys(("clocks_disagree", "bad_timestamp", "timestamp_without_zone"), "timestamp"),
    "timestamp_out_of_window": "timestamp",
}
# Why an optional field is missing.
_MISSED = {
    "no_retriever": "no step searches for documents",
    "nothing_found": "the search found no documents, or did not log them",
    "searched_after_answer": "documents were only searched for after the answer",
    "no_chunks": "the trace has no chunks",
    "no_prompt": "the prompt was not logged, so the chunks have the order of the search",
    "not_in_prompt": "no chunk stands unchanged in the prompt, so the chunks have the order of the search",
    "by_position": "a document has no id: its chunk is named by its position",
    "no_citations": "the answer cites nothing",
    "dangling": "a citation names no chunk",
    "no_session": "no id of a conversation",
}
# Config keys of a span source that can fix a cause.
_SPAN_KEYS = {
    "no_root": "`spans.root`; `grace_minutes`, where the root arrives late",
    "several_roots": "`spans.root`",
    "no_question": "`spans.question`, `spans.root`",
    "question_holds_context": "`spans.question`, `spans.root`",
    "empty_question": "`spans.question`",
    "no_answer": "`spans.answer`, unless the application failed",
    "no_retriever": "`spans.tool`, `spans.kinds`",
    "nothing_found": "`spans.tool`, `spans.kinds`",
    "searched_after_answer": "`spans.kinds`, for the call that answers",
    "not_in_prompt": "`spans.prompt: ignore` says that this is known",
    "no_prompt": "`spans.prompt: ignore` says that this is known",
    "by_position": "`spans.chunk_id`",
}
# The same for a tabular source.
_COLUMN_KEYS = {
    "missing_field": "`columns`",
    "wrong_type": "`columns`, `chunk`",
    "empty_id": "`columns.id`, `columns.chunk_ids`, `chunk.id`",
    "no_question": "`columns.question`",
    "empty_question": "`columns.question`",
    "no_answer": "`columns.answer`, unless the application failed",
    "no_chunks": "`columns.chunks`",
    "no_chunk_text": "`chunk.text`",
    "bad_timestamp": "`columns.timestamp`",
    "timestamp_out_of_window": "`columns.timestamp`",
    "by_position": "`chunk.id`, `columns.chunk_ids`",
    "no_session": "`columns.session`",
}


@dataclass(frozen=True, slots=True)
class FieldFound:
    """How often one field was found.

    Attributes:
        of: Number of traces that could have the field; for `prompt` and `ids`, only traces with chunks.
        share: `found / of`; None if `of` is 0.
        where: Places where the field was found, with the number of traces, most frequent first.
    """

    field: str
    found: int
    of: int
    share: float | None
    where: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a field is missing or a row is refused.

    Attributes:
        text: The cause in words; for refused rows, the detail of the first one.
        traces: Number of traces.
        examples: Ids of a few of these traces.
        key: Config keys of the source that may fix the cause; empty if there are none.
        normal: Whether the source is not at fault, for example because the application failed.
    """

    field: str
    reason: str
    text: str
    traces: int
    examples: Sequence[str]
    key: str
    normal: bool


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check.

    Attributes:
        seen: Number of traces and refused rows.
        of_day: Number of traces of the day. Files without a day in their names may contain other days.
        below: Fields whose share is too low, with the required share.
    """

    files: Sequence[str]
    seen: int
    of_day: int
    imported: int
    skipped: int
    fields: Sequence[FieldFound]
    causes: Sequence[Cause]
    below: Mapping[str, float]


@dataclass
class _Tally:
    """Counts of one field."""

    found: int = 0
    missed: int = 0
    where: Counter[str] = field(default_factory=Counter)


class _Counts:
    """All counts of a check."""

    def __init__(self, source: Source) -> None:
        self.of_spans = isinstance(source, SpanSource)
        self.keys = _SPAN_KEYS if self.of_spans else _COLUMN_KEYS if isinstance(source, TabularSource) else {}
        self.fields = {name: _Tally() for name in FIELDS}
        self.causes: dict[tuple[str, str], tuple[str, list[str]]] = {}
        self.numbers: Counter[tuple[str, str]] = Counter()

    def found(self, name: str, where: str) -> None:
        self.fields[name].found += 1
        if where:
            self.fields[name].where[where] += 1

    def missed(self, name: str, reason: str, trace_id: str | None, text: str = "") -> None:
        """Count a missing field. A normal reason is listed as a cause but does not lower the field's share."""
        if reason not in NORMAL:
            self.fields[name].missed += 1
        _, examples = self.causes.setdefault((name, reason), (text or _MISSED[reason], []))
        self.numbers[name, reason] += 1
        if trace_id and len(examples) < NAMED:
            examples.append(trace_id)

    def refused(self, reason: str, trace_id: str | None, detail: str) -> None:
        """Count a refused row."""
        lacks = _LACKS.get(reason, "trace")
        self.missed(lacks, reason, trace_id, detail)
        if lacks != "trace" and reason not in NORMAL:
            self.fields["trace"].missed += 1


def check(
    source: Source,
    day: date,
    today: date,
    limit: int,
    least: Mapping[str, float] | None = None,
    gates: Gates | None = None,
    extractor: Mapping[str, object] | None = None,
) -> Check:
    """Check what a source provides for a day.

    Args:
        today: Current day; the gates refuse timestamps in the future.
        limit: Maximum number of traces to read.
        least: Required shares of fields, in addition to `LEAST`.
        gates: Limits of the nightly config.
        extractor: Settings of a recipe's extractor. Only those for cutting claims and citations are used.

    Raises:
        SourceError: The source can't be read, or has no file for the day.
    """
    files = files_of(source, day)
    counts = _Counts(source)
    keeper = GateKeeper(gates or Gates(), None)
    shared = {key: value for key, value in (extractor or {}).items() if key in CutSettings.model_fields}
    segments = extractors.load({"kind": "segments", **shared}, "recipe.extractor")
    seen = of_day = imported = 0
    rows = islice(_read(source, files, limit), limit)
    while group := list(islice(rows, AT_ONCE)):
        rejects = [one.reject for one in group if one.reject]
        good = [one for one in group if one.trace]
        seen += len(group)
        of_day += sum(one.trace.timestamp.astimezone(UTC).date() == day for one in good if one.trace)
        for reject in rejects:
            counts.refused(reject.reason, reject.trace_id, reject.detail)
        table = to_table([one.trace for one in good if one.trace], range(1, len(good) + 1))
        refused = {row: (reason, detail) for row, reason, detail in keeper.check_traces(table, day, today).iter_rows()}
        for row, (reason, detail) in refused.items():
            trace = good[row].trace
            counts.refused(reason, trace and trace.trace_id, detail)
        kept = [one for row, one in enumerate(good) if row not in refused]
        imported += len(kept)
        _count(counts, kept, segments)
    wanted = {**LEAST, **(least or {})}
    fields = [_field(name, tally) for name, tally in counts.fields.items()]
    below = {f.field: wanted[f.field] for f in fields if f.field in wanted and (f.share or 0) < wanted[f.field]}
    causes = [
        Cause(name, reason, text, counts.numbers[name, reason], examples,
              counts.keys.get(reason, ""), reason in NORMAL)
        for (name, reason), (text, examples) in counts.causes.items()
    ]  # fmt: skip
    causes.sort(key=lambda c: (FIELDS.index(c.field), -c.traces, c.reason))
    return Check([f.path for f in files], seen, of_day, imported, seen - imported, fields, causes, below)


def find(source: Source, day: date, trace_id: str) -> tuple[Assembled, Sequence[Span]]:
    """Return one trace of a day, and its spans if the source has spans.

    Raises:
        SourceError: The source can't be read, or has no such trace for the day.
    """
    for file in files_of(source, day):
        if isinstance(source, SpanSource):
            if spans := [s for s in source.spans(file) if isinstance(s, Span) and s.trace_id == trace_id]:
                return assemble(spans, source.settings), spans
            continue
        for batch in source.read(file):
            for one in of_batch(batch):
                about = one.trace or one.reject
                if about and about.trace_id == trace_id:
                    return one, ()
    raise SourceError(f"The source has no trace {trace_id!r} on {day}. Check the id, or give its day with --date.")


def files_of(source: Source, day: date) -> list[SourceFile]:
    """Return a source's files for a day, without the preceding hours that a nightly run reads again.

    Raises:
        SourceError: There are none.
    """
    found = [file for file in source.files(day, day) if file.day in (day, None)]
    if not found:
        raise SourceError(f"The source has no file for {day}. Give another day with --date, or check its paths.")
    return found


def _read(source: Source, files: Sequence[SourceFile], limit: int) -> Iterator[Assembled]:
    for file in files:
        if isinstance(source, SpanSource | TabularSource):
            yield from source.traces(file, limit)
        else:
            for batch in source.read(file):
                yield from of_batch(batch)


def of_batch(batch: Batch) -> Iterator[Assembled]:
    """Yield the traces and rejects of a batch in file order."""
    rows: list[tuple[int, Mapping[str, Any] | Reject]] = [(r.line, r) for r in batch.rejects]
    rows += [(row.pop("line"), row) for row in batch.table.to_pylist(maps_as_pydicts="strict")]
    for line, row in sorted(rows, key=lambda one: one[0]):
        if isinstance(row, Reject):
            yield Assembled(line, reject=row)
        else:
            yield Assembled(line, msgspec.convert(row, Trace))


def _count(counts: _Counts, kept: Sequence[Assembled], extractor: Extractor) -> None:
    """Count the fields of imported traces."""
    traces = [one.trace for one in kept if one.trace]
    cut = extractor.extract_many([Answer(t.question, t.answer, t.chunks, t.citations) for t in traces])
    for one, trace, extraction in zip(kept, traces, cut, strict=True):
        where, missed = one.found.where, dict(one.found.missed)
        counts.found("trace", "")
        for name in ("question", "answer"):
            counts.found(name, where.get(name, name))
        counts.found("timestamp", where.get("timestamp", "start of the root" if counts.of_spans else "timestamp"))
        if trace.chunks:
            counts.found("chunks", where.get("chunks", "chunks"))
            if "ids" not in missed:
                counts.found("ids", where.get("ids", "chunk_id"))
            if "prompt" in where:
                counts.found("prompt", where["prompt"])
        else:
            missed.setdefault("chunks", "no_chunks")
        if trace.session:
            counts.found("session", where.get("session", "session"))
        else:
            missed.setdefault("session", "no_session")
        if any(claim.dangling for claim in extraction.claims):
            missed["citations"] = "dangling"
        elif any(claim.cited_chunk_ids for claim in extraction.claims):
            counts.found("citations", "citations" if trace.citations is not None else "answer")
        else:
            missed["citations"] = "no_citations"
        for name, reason in missed.items():
            counts.missed(name, reason, trace.trace_id)


def _field(name: str, tally: _Tally) -> FieldFound:
    of = tally.found + tally.missed
    return FieldFound(name, tally.found, of, tally.found / of if of else None, dict(tally.where.most_common()))
