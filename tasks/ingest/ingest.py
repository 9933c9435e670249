"""Ingest and validate: source files into `traces`, refused rows into `quarantine`, one ledger row per file.

Everything is staged beside the lake first. Only when the whole run's share of refused rows is within the limit are
the staged parts renamed into place, and each file's ledger row is written after its parts. A file without a ledger row
is read again from the start.

No part of `traces` is removed. Where a file without a row has parts in the lake, what it lacks is added to them; where
it is not read in this run, they are adopted (`ledger.py`).
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.errors import DataError
from tasks.core.progress import tracked
from tasks.core.schemas import NEVER_READ, QUARANTINE, TRACES
from tasks.ingest import ledger
from tasks.run.context import Context
from tasks.run.redacted import requested_redactions
from tasks.run.result import StageResult
from tasks.sources import Batch, Source, SourceFile
from tasks.store.lake import Lake, Part, empty, from_rows
from tasks.store.query import Queries

REMOVED = "removed"
BUFFER_BYTES = 64 << 20  # decoded rows held before they are gated, deduplicated and staged
PLACES = 3  # of refused rows, named in the run's notes


@dataclass
class _File:
    """What one file gave so far.

    Attributes:
        day: Night that its refused rows count for, where their own timestamp can't be read.
        parts: Names for its parts, those left out that are in the lake.
        before: What these hold: content hashes by trace id, but for the traces that were found again.
        ingested: New traces.
        found: Traces of the parts that are in the lake.
    """

    file: SourceFile
    name: str
    day: date
    parts: Iterator[str]
    before: dict[str, str]
    rows: int = 0
    known: int = 0
    ingested: int = 0
    found: int = 0
    forgotten: int = 0
    refused: list[pa.Table] = field(default_factory=list)

    @property
    def quarantined(self) -> int:
        return sum(t.num_rows for t in self.refused)


def ingest(ctx: Context) -> StageResult:
    """Read every file that the sources name for the run's days and that is not in the ledger yet.

    Returns:
        `computed` = new traces, `reused` = rows that were known or whose file was; notes name refused rows, parts that
        were adopted, days outside the run that became incomplete, and unusual volumes.

    Raises:
        SourceError: A file can't be read.
        DataError: More rows were refused than the config allows; they can be seen in `quarantine`, nothing else
            of this run's files was kept.
    """
    read = ledger.ledger(ctx.lake)
    found = _files(ctx)
    new = [(source, file) for source, file in found if (file.path, file.fingerprint) not in read]
    reused = sum(read.get((file.path, file.fingerprint), 0) for _, file in found)
    if not new:
        missing = [] if found else ["No source file was found for these days."]
        return StageResult("ingest", reused=reused, notes=(*missing, *ledger.adopt(ctx.lake)))
    staging = ctx.lake.hidden("staging")
    shutil.rmtree(staging, ignore_errors=True)
    work = _Ingest(ctx, Lake(staging))
    files: list[_File] = []
    try:
        with tracked(ctx.progress, "ingest", len(new)), ctx.queries() as queries:
            for source, file in new:
                files.append(work.read(queries, source, file))
                ctx.progress.advance()
        _check_share(ctx, files)
        before = {date.fromisoformat(d): _rows(ctx.lake, d) for d in ctx.lake.values(TRACES)}
        days = _commit(ctx.lake, work.staged, files)
        shutil.rmtree(staging, ignore_errors=True)
        earlier = [n for d, n in sorted(before.items()) if n and d < min(days, default=ctx.first)]
        totals = {d: n + before.get(d, 0) for d, n in days.items()}  # a night counts with what came late
        notes = [*_refused(files), *ledger.adopt(ctx.lake), *ctx.gates.check_volume(totals, earlier)]
    finally:
        ctx.gates.write_docs(f"{ctx.first}..{ctx.last}")
    outside = sorted(d for d in days if not ctx.covers(d))
    if outside:
        shown = ", ".join(map(str, outside[:5])) + (", …" if len(outside) > 5 else "")
        notes.append(f"Traces arrived for days outside this run: {shown}. Complete them with --from and --to.")
    return StageResult(
        "ingest",
        computed=sum(f.ingested for f in files),
        reused=reused + sum(f.found + f.known for f in files),
        notes=tuple(notes),
    )


def _files(ctx: Context) -> list[tuple[Source, SourceFile]]:
    """The files that the sources name; of one that two sources name, once, and with the day that either knows."""
    found: dict[tuple[str, str], tuple[Source, SourceFile]] = {}
    for source in ctx.sources:
        for file in source.files(ctx.first, ctx.last):
            if file.day or (file.path, file.fingerprint) not in found:
                found[file.path, file.fingerprint] = source, file
    return list(found.values())


def _rows(lake: Lake, day: str) -> int:
    return sum(p.rows() for p in lake.parts(TRACES, day))


class _Ingest:
    """Reads files into staged parts; remembers what has arrived in this run."""

    def __init__(self, ctx: Context, staging: Lake) -> None:
        self._ctx = ctx
        self._staging = staging
        self._removed = requested_redactions(ctx.lake)
        self._there = ledger.parts_by_file(ctx.lake)
        self.staged: dict[str, list[Part]] = {}

    def read(self, queries: Queries, source: Source, file: SourceFile) -> _File:
        """Stage one file's good rows and collect its refused ones."""
        name = ledger.name_of(file)
        there = self._there.get(name, ())
        day = file.day or self._ctx.last
        state = _File(file, name, day, ledger.free_names(name, there), ledger.hashes(there))
        waiting: dict[date, list[pa.Table]] = {}
        self.staged[state.name] = []
        for rows in _one_ahead(_buffered(source.read(file), state, self._removed)):
            for table in self._admit(queries, rows, state, waiting):
                day = table["date"][0].as_py()
                waiting.setdefault(day, []).append(table)
            self._stage(state, waiting, last=False)
        self._stage(state, waiting, last=True)
        return state

    def _admit(
        self, queries: Queries, rows: pa.Table, state: _File, waiting: dict[date, list[pa.Table]]
    ) -> Iterator[pa.Table]:
        """Gate and deduplicate; yields the new traces, a table per day."""
        rows = _without_found(self._without_redacted(rows, state), state)
        found = self._ctx.gates.check_traces(rows, self._ctx.last, self._ctx.today)
        refused = {row: (reason, detail) for row, reason, detail in found.iter_rows()}
        state.refused.append(_quarantine(rows, "gate", refused, state.file.path))
        kept = pa.array((i for i in range(rows.num_rows) if i not in refused), pa.int64())
        batch = pa.table({
            "row": kept,
            "trace_id": rows["trace_id"].take(kept),
            "content_hash": rows["content_hash"].take(kept),
        })  # fmt: skip
        arrived = [t.select(["trace_id", "content_hash"]) for day in waiting.values() for t in day]
        staged = [p for parts in self.staged.values() for p in parts]
        duplicates = queries.run(
            "ingest/duplicates",
            {
                "batch": batch,
                "traces": [*self._ctx.lake.parts(TRACES), *staged],
                "arrived": pa.concat_tables(arrived) if arrived else empty(TRACES),
            },
        )
        outcome = dict(zip(duplicates["row"].to_pylist(), duplicates["outcome"].to_pylist(), strict=True))
        conflicts = {
            row: ("conflicting_duplicate", "the trace id is already there with other content; the first one stays")
            for row, what in outcome.items()
            if what != "known"
        }
        state.refused.append(_quarantine(rows, "duplicate", conflicts, state.file.path))
        state.known += len(outcome) - len(conflicts)
        fresh = rows
        if len(outcome) + len(refused):
            fresh = rows.take(pa.array((i for i in kept.to_pylist() if i not in outcome), pa.int64()))
        state.ingested += fresh.num_rows
        fresh = fresh.append_column("date", fresh["timestamp"].cast(pa.date32()))
        days = pc.unique(fresh["date"]).to_pylist()
        for day in days:
            yield fresh.filter(pc.equal(fresh["date"], day)) if len(days) > 1 else fresh

    def _without_redacted(self, rows: pa.Table, state: _File) -> pa.Table:
        """The rows of traces whose text nobody asked to have removed; the others are refused without it."""
        forgotten = pc.is_in(rows["trace_id"], pa.array(sorted(self._removed), pa.string())).to_pylist()
        if not any(forgotten):
            return rows
        why = (REMOVED, "its text was removed on request (leadline forget)")
        gone = _quarantine(rows, "gate", {i: why for i, there in enumerate(forgotten) if there}, state.file.path)
        state.refused.append(_emptied(gone))
        state.forgotten += gone.num_rows
        return rows.filter(pa.array([not there for there in forgotten]))

    def _stage(self, state: _File, waiting: dict[date, list[pa.Table]], *, last: bool) -> None:
        """Write full parts, and what is left at the end of the file or when too much waits in memory."""
        size = self._ctx.config.limits.part_traces
        parts = self.staged[state.name]
        everything = last or sum(t.nbytes for day in waiting.values() for t in day) > BUFFER_BYTES
        for day in sorted(waiting):
            table = pa.concat_tables(waiting[day])
            full = table.num_rows if everything else table.num_rows // size * size
            for at in range(0, full, size):
                piece = table.slice(at, min(size, full - at))
                parts.append(self._staging.write(TRACES, next(state.parts), piece, str(day)))
            rest = table.slice(full)
            waiting[day] = [rest]
            if not rest.num_rows:
                del waiting[day]


def _without_found(rows: pa.Table, state: _File) -> pa.Table:
    """The rows that no part of this file holds yet; each of the others is counted once, and a copy of it stays."""
    if not state.before:
        return rows
    new = []
    for trace_id, content in zip(rows["trace_id"].to_pylist(), rows["content_hash"].to_pylist(), strict=True):
        there = state.before.get(trace_id) == content
        if there:
            del state.before[trace_id]
            state.found += 1
        new.append(not there)
    return rows.filter(pa.array(new, pa.bool_()))


def _buffered(batches: Iterator[Batch], state: _File, removed: Set[str]) -> Iterator[pa.Table]:
    """Good rows in larger tables; refused ones go to the file's list at once."""
    held: list[pa.Table] = []
    for batch in batches:
        state.rows += batch.rows
        rejects = [
            {
                "source": state.file.path,
                "line": r.line,
                "trace_id": r.trace_id,
                "date": r.day or state.day,
                "stage": "parse",
                "reason": r.reason,
                "detail": r.detail,
                "raw": "" if r.trace_id in removed else r.raw.decode("utf-8", "backslashreplace"),
            }
            for r in batch.rejects
        ]
        if rejects:
            state.refused.append(from_rows(rejects, QUARANTINE))
        held.append(batch.table)
        if sum(t.nbytes for t in held) > BUFFER_BYTES:
            yield pa.concat_tables(held).combine_chunks()
            held = []
    if any(t.num_rows for t in held):
        yield pa.concat_tables(held).combine_chunks()


def _one_ahead(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same tables; the next one is decoded while the caller writes this one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, tables, None)
        while (table := coming.result()) is not None:
            coming = reader.submit(next, tables, None)
            yield table


def _quarantine(rows: pa.Table, stage: str, refused: dict[int, tuple[str, str]], source: str) -> pa.Table:
    """Quarantine rows for some rows of a batch; the raw row is the trace as it was read."""
    if not refused:
        return empty(QUARANTINE)
    order = sorted(refused)
    made = [
        {
            "source": source,
            "line": row["line"],
            "trace_id": row["trace_id"],
            "date": row["timestamp"].date(),
            "stage": stage,
            "reason": refused[i][0],
            "detail": refused[i][1],
            "raw": msgspec.json.encode(_as_read(row)).decode(),
        }
        for i, row in zip(order, rows.take(pa.array(order)).to_pylist(), strict=True)
    ]
    return from_rows(made, QUARANTINE)


def _emptied(refused: pa.Table) -> pa.Table:
    at = refused.schema.get_field_index("raw")
    return refused.set_column(at, refused.schema.field(at), pa.array([""] * refused.num_rows, pa.string()))


def _as_read(row: dict[str, Any]) -> dict[str, object]:
    """A row of a batch in the trace format, so that a mended one can be given to a source again."""
    return {**{k: v for k, v in row.items() if k not in {"line", *NEVER_READ}}, "tags": dict(row["tags"])}


def _check_share(ctx: Context, files: list[_File]) -> None:
    # What was removed on request is refused for ever: that tells nothing of the source.
    rows = sum(f.rows - f.forgotten for f in files)
    refused = sum(f.quarantined - f.forgotten for f in files)
    limit = ctx.config.gates.max_quarantined_share
    for f in files:
        if f.quarantined:
            ctx.lake.write(QUARANTINE, f.name, pa.concat_tables(f.refused))
        else:  # an earlier try may have refused rows that pass now
            ctx.lake.drop(QUARANTINE, f.name)
    if rows and refused / rows > limit:
        raise DataError(
            f"{refused} of {rows} new rows were refused ({refused / rows:.1%}; most: {_reasons(files, 3)}), more than "
            f"gates.max_quarantined_share = {limit:.1%}. No new trace was kept. Read the refused rows with "
            f"{ctx.sql_command('FROM quarantine')}, then correct the source or raise the limit."
        )


def _refused(files: list[_File]) -> list[str]:
    """A note on the refused rows, if there are any: reasons and places, without their texts."""
    refused = sum(f.quarantined for f in files)
    if not refused:
        return []
    lines = ((f.file.path, sorted(line for t in f.refused for line in t["line"].to_pylist())) for f in files)
    places = ", ".join(islice((f"{path}:{line}" for path, found in lines for line in found), PLACES))
    rows = "1 row was" if refused == 1 else f"{refused:,} rows were"
    first = "the first at " if refused > PLACES else ""
    return [f"{rows} refused ({_reasons(files)}): {first}{places}."]


def _reasons(files: list[_File], most: int | None = None) -> str:
    """Why rows were refused, and how many, the most frequent reasons first."""
    reasons = Counter(r for f in files for t in f.refused for r in t["reason"].to_pylist())
    return ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common(most))


def _commit(lake: Lake, staged: dict[str, list[Part]], files: list[_File]) -> dict[date, int]:
    """Rename staged parts into the lake, file by file, each with its ledger row last; new traces per day."""
    days: Counter[date] = Counter()
    for f in files:
        for part in staged[f.name]:
            days[part.date] += part.rows()
            target = lake.path(TRACES, part.name, *part.partition)
            target.parent.mkdir(parents=True, exist_ok=True)
            part.path.replace(target)
        ingested = f.ingested + f.found
        ledger.record(lake, f.name, f.file, ingested=ingested, known=f.known, quarantined=f.quarantined)
    return dict(days)
