"""Retention: texts and explanations that are too old, or that a person asked to have removed, leave the lake.

Scores, labels, spans and ids stay, and `traces` says what is gone, when and why. Parts are rewritten in their place
under their names and tokens, so that nothing is computed again. Everything here looks at what is still there, and a
run that was killed is completed by the next one: a request is put on record before anything is removed, `traces` is
marked before what was made of it is rewritten (no stage reads an emptied text), and the nights whose pages have to go
are noted until they are gone. Left out: the warehouse and the report, which are made again (`flows/retention.py`).
"""

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.config import Retention
from tasks.core.schemas import (
    CHUNK,
    CLAIMS,
    FEEDBACK,
    GRADES,
    PAIRS,
    QUARANTINE,
    REDACTIONS,
    TRACE_SCORES,
    TRACES,
    TS,
    VERDICTS,
    Table,
)
from tasks.run.redacted import MARK, all_columns, redacted_traces
from tasks.run.result import StageResult
from tasks.store.lake import Lake, Part, from_rows

EXPIRED, DELETED = "expired", "deleted"
PENDING = ".removing"  # beside the tables: nights whose texts are being removed, until their pages are gone
# Beside the tables: of runs that were killed, or whose budget ended while claims were cut. They begin from the start.
LEFTOVERS = ("staging", "scratch", "unfinished")
EXPLAINED = (VERDICTS, GRADES)  # tables with a judge's reasons and replies
# What each stage of a run writes.
TABLES = {
    "texts": (TRACES,),
    "claims": (CLAIMS,),
    "questions": (TRACE_SCORES,),
    "explanations": EXPLAINED,
    "quarantine": (QUARANTINE,),
}
# Rows of a table, and which of them are of traces without text, to the rows that hold text and the emptied columns.
Emptying: TypeAlias = Callable[[pa.Table, pa.Array], tuple[pa.Array, dict[str, Any]]]
GONE = "removed"  # in the place of a deleted trace's content hash, which might confirm a guess


@dataclass(frozen=True, slots=True)
class Due:
    """What has to go.

    Attributes:
        texts: Traces of days before this one lose their texts; None for none.
        explanations: Verdicts and grades of days before this one lose their explanations.
        traces: Ids of traces that a person asked for and that are not done yet.
    """

    texts: date | None = None
    explanations: date | None = None
    traces: frozenset[str] = frozenset()


def request(lake: Lake, trace_ids: Iterable[str], reason: str | None, now: datetime) -> None:
    """Put on record that these traces' texts are to be removed. Whatever happens next, they don't come back."""
    for trace_id in trace_ids:
        name = _name(trace_id)
        if lake.find(REDACTIONS, name) is None or not _open(lake, name):
            row = {"trace_id": trace_id, "requested_at": now, "reason": reason, "redacted_at": None}
            lake.write(REDACTIONS, name, from_rows([row], REDACTIONS))


def due(lake: Lake, settings: Retention, today: date) -> Due:
    """What has to go by these settings and by open requests; settings without days leave the requests alone."""
    texts, explanations = (
        today - timedelta(days=days) if days is not None else None
        for days in (settings.text_days, settings.explanations_days)
    )
    limits = [day for day in (texts, explanations) if day is not None]
    wanted = frozenset(
        r["trace_id"] for p in lake.parts(REDACTIONS) for r in p.read().to_pylist() if not r["redacted_at"]
    )
    return Due(texts, max(limits, default=None), wanted)


def remove(lake: Lake, what: Due, now: datetime) -> list[StageResult]:
    """Remove what is due from the lake; to be called with its locks held, or on an overlay, to see what would go.

    Returns:
        Traces, claims, scores (their question's hash), explanations and refused rows that lost texts in this run.
    """
    parts = {part: _due_in(part, what) for part in lake.parts(TRACES)}
    nights = {part.date for part, mask in parts.items() if mask is not None}
    explained = [p for table in EXPLAINED for p in lake.parts(table)] if what.explanations else []
    nights |= {p.date for p in explained if what.explanations and p.date < what.explanations and _explained(p)}
    if nights or what.traces:
        _note(lake, nights)
    done = [
        StageResult(
            "texts", computed=sum(_empty_traces(lake, p, m, what, now) for p, m in parts.items() if m is not None)
        ),
        StageResult("claims", computed=_empty_made(lake, CLAIMS, _empty_claims, what)),
        StageResult("questions", computed=_empty_made(lake, TRACE_SCORES, _empty_scores, what)),
        StageResult("explanations", computed=_empty_verdicts(lake, what) + _empty_grades(lake, what)),
        StageResult("quarantine", computed=_empty_quarantine(lake, what)),
    ]
    for name in LEFTOVERS if lake.overlay is None else ():
        for left in lake.root.glob(f".{name}*"):
            shutil.rmtree(left, ignore_errors=True)
    return done


def pending(lake: Lake) -> list[date] | None:
    """Nights whose pages and tables may still show what was removed; None where nothing is under way."""
    for base in (lake.overlay, lake.root):
        if base is not None and (note := base / PENDING).exists():
            return [date.fromisoformat(d) for d in json.loads(note.read_text())]
    return None


def finish(lake: Lake, what: Due, now: datetime) -> None:
    """Put on record that everything is gone, from the warehouse and the report too."""
    for trace_id in sorted(what.traces):
        part = lake.find(REDACTIONS, _name(trace_id))
        assert part is not None  # noqa: S101 - it is what made the request due
        lake.write(REDACTIONS, part.name, from_rows([{**part.read().to_pylist()[0], "redacted_at": now}], REDACTIONS))
    (lake.root / PENDING).unlink(missing_ok=True)


def held(lake: Lake, trace_ids: Collection[str]) -> set[str]:
    """Which of these traces are in the lake."""
    return {t for p in lake.parts(TRACES) for t in p.read(["trace_id"])["trace_id"].to_pylist() if t in trace_ids}


def _name(trace_id: str) -> str:
    return keys.key("removal", trace_id)


def _open(lake: Lake, name: str) -> bool:
    part = lake.find(REDACTIONS, name)
    return part is not None and part.read(["redacted_at"])["redacted_at"].null_count > 0


def _note(lake: Lake, nights: Collection[date]) -> None:
    known = {*(pending(lake) or []), *nights}
    note = (lake.overlay or lake.root) / PENDING
    fresh = note.with_suffix(".tmp")
    fresh.write_text(json.dumps(sorted(map(str, known))))
    fresh.replace(note)


def _gone(part: Part, what: Due) -> pa.Array:
    """Ids of the due traces of a part whose texts were removed, now or by a run that did not come to its end."""
    gone = redacted_traces(part)
    if what.texts is not None and part.date < what.texts:
        return gone
    return gone.filter(pc.is_in(gone, pa.array(sorted(what.traces), pa.string())))


def _due_in(part: Part, what: Due) -> "np.ndarray[tuple[int], np.dtype[np.bool_]] | None":
    """Which traces of a part lose their texts; None where none does."""
    old = what.texts is not None and part.date < what.texts
    if not old and not what.traces:
        return None
    rows = part.read(["trace_id", MARK, "text_redacted"])
    ids = rows["trace_id"].to_pylist()
    why = rows["text_redacted"].to_pylist() if MARK in rows.column_names else [None] * len(ids)
    mask = np.array([w != DELETED if i in what.traces else old and w is None for i, w in zip(ids, why, strict=True)])
    return mask if mask.any() else None


def _empty_traces(
    lake: Lake, part: Part, mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]", what: Due, now: datetime
) -> int:
    rows = all_columns(part, TRACES).combine_chunks()
    wanted = pa.array([i in what.traces for i in rows["trace_id"].to_pylist()], pa.bool_())
    gone, deleted = pa.array(mask), pc.and_(pa.array(mask), wanted)
    never = pa.scalar(None, pa.string())
    columns = {
        "question": pc.if_else(gone, "", rows["question"]),
        "answer": pc.if_else(gone, "", rows["answer"]),
        "chunks": _empty_chunks(rows["chunks"].chunk(0), mask),
        "reference_answer": pc.if_else(gone, never, rows["reference_answer"]),
        "session": pc.if_else(gone, never, rows["session"]),
        "feedback": pa.array(
            [f and {**f, "comment": None} if m else f for f, m in zip(rows["feedback"].to_pylist(), mask, strict=True)],
            FEEDBACK,
        ),
        "tags": pa.array(
            [[] if m else t for t, m in zip(rows["tags"].to_pylist(), mask, strict=True)],
            TRACES.schema.field("tags").type,
        ),
        "content_hash": pc.if_else(deleted, GONE, rows["content_hash"]),
        MARK: pc.if_else(gone, pa.scalar(now, TS), rows[MARK]),
        "text_redacted": pc.if_else(deleted, DELETED, pc.if_else(gone, EXPIRED, rows["text_redacted"])),
    }
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    lake.write(TRACES, part.name, rows, *part.partition, inputs="texts removed")
    return int(mask.sum())


def _empty_chunks(chunks: pa.ListArray, mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> pa.ListArray:
    """The same chunks, those of the given traces without titles and texts."""
    lengths = pc.list_value_length(chunks).to_numpy(zero_copy_only=False)
    flat, gone = chunks.flatten(), pa.array(np.repeat(mask, lengths))
    fields = {f.name: flat.field(i) for i, f in enumerate(CHUNK)}
    fields["title"] = pc.if_else(gone, pa.scalar(None, pa.string()), fields["title"])
    fields["text"] = pc.if_else(gone, "", fields["text"])
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([*fields.values()], fields=list(CHUNK)))


def _empty_claims(rows: pa.Table, gone: pa.Array) -> tuple[pa.Array, dict[str, Any]]:
    full = [pc.not_equal(rows[name], "") for name in ("text", "context", "hypothesis")]
    dangling = zip(rows["dangling_citations"].to_pylist(), gone.to_pylist(), strict=True)
    emptied = {name: pc.if_else(gone, "", rows[name]) for name in ("text", "context", "hypothesis")}
    lists = pa.array([[""] * len(d) if g else d for d, g in dangling], pa.list_(pa.string()))
    return pc.or_(pc.or_(full[0], full[1]), full[2]), {**emptied, "dangling_citations": lists}


def _empty_scores(rows: pa.Table, gone: pa.Array) -> tuple[pa.Array, dict[str, Any]]:
    """A question's hash might confirm a guess at it."""
    ids = rows["question_id"]
    return pc.is_valid(ids), {"question_id": pc.if_else(gone, pa.scalar(None, pa.string()), ids)}


def _empty_made(lake: Lake, table: Table, empty: Emptying, what: Due) -> int:
    """Empty the rows that were made of due traces, under every extractor or recipe; returns rows emptied now."""
    found = 0
    versions = lake.values(table)
    for part in lake.parts(TRACES):
        gone = _gone(part, what)
        for version in versions if len(gone) else ():
            made = lake.find(table, part.name, version, part.partition[-1])
            if made is None:
                continue
            rows = all_columns(made, table)
            theirs = pc.is_in(rows["trace_id"], gone).combine_chunks()
            full, columns = empty(rows, theirs)
            if n := int(pc.sum(pc.and_(theirs, full)).as_py() or 0):
                for name, column in columns.items():
                    rows = rows.set_column(rows.schema.get_field_index(name), name, column)
                _note(lake, {part.date})  # a killed run had emptied the traces, and another one closed its note
                lake.write(table, made.name, rows, *made.partition, inputs=made.inputs())
                found += n
    return found


def _explained(part: Part) -> int:
    rows = part.read(["explanation", "raw"])
    return int(pc.sum(pc.or_(pc.is_valid(rows["explanation"]), pc.is_valid(rows["raw"]))).as_py() or 0)


def _empty_verdicts(lake: Lake, what: Due) -> int:
    """Explanations that are too old, and those of what the traces that were asked for had judged, of any day."""
    return _empty_explanations(lake, VERDICTS, "request_key", sorted(_requests(lake, what.traces)), what)


def _empty_grades(lake: Lake, what: Due) -> int:
    """Explanations of grades that are too old, and those of the traces that were asked for."""
    return _empty_explanations(lake, GRADES, "trace_id", sorted(what.traces), what)


def _empty_explanations(lake: Lake, table: Table, column: str, asked: Sequence[str], what: Due) -> int:
    """Explanations and replies that are too old, and those of rows with one of the given values in a column."""
    wanted = pa.array(asked, pa.string())
    found = 0
    for part in lake.parts(table):
        old = what.explanations is not None and part.date < what.explanations
        if not (old or asked) or not _explained(part):
            continue
        rows = all_columns(part, table)
        theirs = pa.array([True] * rows.num_rows) if old else pc.is_in(rows[column], wanted).combine_chunks()
        said = pc.or_(pc.is_valid(rows["explanation"]), pc.is_valid(rows["raw"]))
        n = int(pc.sum(pc.and_(theirs, said)).as_py() or 0)
        if n:
            for name in ("explanation", "raw"):
                emptied = pc.if_else(theirs, pa.scalar(None, pa.string()), rows[name])
                rows = rows.set_column(rows.schema.get_field_index(name), name, emptied)
            lake.write(table, part.name, rows, *part.partition, inputs=part.inputs())
            found += n
    return found


def _requests(lake: Lake, traces: Collection[str]) -> Iterator[str]:
    """Keys of what was judged of these traces, under whatever recipe."""
    wanted = pa.array(sorted(traces), pa.string())
    for part in lake.parts(PAIRS) if traces else ():
        rows = part.read(["trace_id", "request_key"])
        yield from rows.filter(pc.is_in(rows["trace_id"], wanted))["request_key"].to_pylist()


def _empty_quarantine(lake: Lake, what: Due) -> int:
    """Refused rows of days that are too old, or of the traces that were asked for, as far as a row names one."""
    found = 0
    named = [json.dumps(trace, ensure_ascii=False) for trace in sorted(what.traces)]
    for part in lake.parts(QUARANTINE):
        rows = all_columns(part, QUARANTINE).to_pylist()
        seen = datetime.fromtimestamp(part.path.stat().st_mtime, UTC).date()  # a row may have no date, or one ahead
        full = [
            bool(row["raw"])
            and (
                (what.texts is not None and min(row["date"] or seen, seen) < what.texts)
                or row["trace_id"] in what.traces
                or any(name in row["raw"] for name in named)
            )
            for row in rows
        ]
        if any(full):
            kept = [{**row, "raw": ""} if gone else row for row, gone in zip(rows, full, strict=True)]
            _note(lake, ())
            before = part.path.stat()
            written = lake.write(QUARANTINE, part.name, from_rows(kept, QUARANTINE), inputs=part.inputs())
            os.utime(written.path, ns=(before.st_atime_ns, before.st_mtime_ns))  # still refused when it was
            found += sum(full)
    return found


def drop_pages(report: Path, nights: Collection[date]) -> None:
    """Remove the pages of these nights, and what a killed run left of them."""
    for night in nights:
        for place in (report / str(night), *report.glob(f".{night}.*")):
            shutil.rmtree(place, ignore_errors=True)
