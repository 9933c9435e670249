"""Ingest and validate: source files into `traces` and `feedback`, refused rows into `quarantine`, files into `sources`.

New traces are staged outside the tables. If the run's share of refused rows is within the limit, the staged parts are
moved into the lake, and each file's ledger row is written after its parts. A file without a ledger row is read again
from the start.

Parts of `traces` are never removed. If a file without a ledger row already has parts in the lake, only the missing
traces are added. If this run doesn't read the file, its parts are adopted (`ledger.py`).
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from tasks.core.config import Sample
from tasks.core.errors import DataError, interruption
from tasks.core.progress import tracked
from tasks.core.schemas import FEEDBACK, NEVER_READ, QUARANTINE, SAMPLES, TRACES
from tasks.ingest import ledger
from tasks.run.context import Context
from tasks.run.redacted import names, naming, requested_redactions
from tasks.run.result import StageResult
from tasks.sources import NORMAL, Batch, Source, SourceFile
from tasks.sources.reading.rejects import kept
from tasks.store.key_index import KeyIndex
from tasks.store.lake import Lake, Part, empty, frame
from tasks.store.query import Queries

REFUSED = frame(empty(QUARANTINE)).schema
RATED = ["timestamp", "trace_id", "feedback"]
LATEST = ["trace_id", "score", "comment"]
BUFFER_BYTES = 64 << 20
_OCCURRENCE = [*ledger.REFUSED_KEY, "occurrence"]
PLACES = 10  # most refused rows listed in the run's notes
CONFLICT = "the trace id is already there with other content; the first one stays"
EXCUSED = [*NORMAL, "redacted"]  # traces redacted on request are refused in every run
REDACTED = "its text was redacted on request (leadline forget)"


@dataclass
class _File:
    """Progress of one file.

    Attributes:
        day: Day for refused rows whose timestamp can't be read.
        parts: Unused names for the file's parts.
        before: `ledger.hashes` of the parts already in the lake, without the traces found again so far.
        ingested: Number of new traces.
        found: Number of traces that the parts in the lake already contain.
        rated: Columns `RATED` of the traces with feedback.
    """

    file: SourceFile
    name: str
    day: date
    parts: Iterator[str]
    before: pl.DataFrame
    rows: int = 0
    duplicates: int = 0
    sampled_out: int = 0
    ingested: int = 0
    found: int = 0
    refused: list[pl.DataFrame] = field(default_factory=list)
    rated: list[pl.DataFrame] = field(default_factory=list)

    @property
    def quarantined(self) -> int:
        return sum(rows.height for rows in self.refused)

    @property
    def excused(self) -> int:
        """Number of refused rows that are not the source's fault."""
        return sum(int(rows["reason"].is_in(EXCUSED).sum()) for rows in self.refused)


@dataclass
class _Staging:
    """Staged parts of `traces`.

    Attributes:
        lake: Temporary lake for the parts.
        part_traces: Number of rows in a full part.
        buffer_bytes: Most bytes kept in memory until a part is full.
        parts: Staged parts by the name of their file.
    """

    lake: Lake
    part_traces: int
    buffer_bytes: int
    parts: dict[str, list[Part]] = field(default_factory=dict)

    def add(self, state: _File, waiting: dict[date, list[pa.Table]], *, last: bool) -> None:
        """Write full parts. Also write the rest at the end of the file or if `waiting` exceeds `buffer_bytes`."""
        parts = self.parts.setdefault(state.name, [])
        everything = last or sum(t.nbytes for day in waiting.values() for t in day) > self.buffer_bytes
        for day in sorted(waiting):
            table = pa.concat_tables(waiting[day])
            full = table.num_rows if everything else table.num_rows // self.part_traces * self.part_traces
            for at in range(0, full, self.part_traces):
                piece = table.slice(at, min(self.part_traces, full - at))
                parts.append(self.lake.write(TRACES, next(state.parts), piece, str(day)))
            rest = table.slice(full)
            waiting[day] = [rest]
            if not rest.num_rows:
                del waiting[day]


def ingest(ctx: Context, *, buffer_bytes: int = BUFFER_BYTES) -> StageResult:
    """Read the source files of the run's days that are not in the ledger yet.

    Args:
        buffer_bytes: Bytes of decoded rows to collect before they are gated, deduplicated and staged.

    Returns:
        `computed` is the number of new traces, `reused` the number of rows that were read before or are duplicates.
        Notes report refused rows, sampling, adopted parts, days outside the run that became incomplete, and unusual
        volumes.

    Raises:
        SourceError: A file can't be read.
        DataError: More rows were refused than the config allows. They are stored in `quarantine`; nothing else of this
            run's files is kept.
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
    work = _Ingest(ctx, _Staging(Lake(staging), ctx.config.limits.part_traces, buffer_bytes))
    files: list[_File] = []
    run_name = f"{ctx.first}..{ctx.last}"
    try:
        with tracked(ctx.progress, "ingest", len(new)), ctx.queries() as queries:
            for source, file in new:
                files.append(work.read(queries, source, file))
                ctx.progress.advance()
        _check_share(ctx, files)
        staged = work.staging.parts
        if ctx.config.sample and ctx.config.sample.per_day:
            staged = work.thinned(files, ctx.config.sample, ctx.config.sample.per_day)
        before = {date.fromisoformat(d): _rows(ctx.lake, d) for d in ctx.lake.values(TRACES)}
        days = _commit(ctx.lake, staged, files)
        shutil.rmtree(staging, ignore_errors=True)
        earlier = [n for d, n in sorted(before.items()) if n and d < min(days, default=ctx.first)]
        totals = {d: n + before.get(d, 0) for d, n in days.items()}  # including traces that were in the lake before
        notes = [*_refused(files), *_left_out(files), *ledger.adopt(ctx.lake), *ctx.gates.check_volume(totals, earlier)]
    except Exception as error:
        if not interruption(error):  # after a signal, there is no time to load Great Expectations (seconds)
            ctx.gates.write_results(run_name)
        raise
    ctx.gates.write_results(run_name)
    outside = sorted(d for d in days if not ctx.covers(d))
    if outside:
        shown = ", ".join(map(str, outside[:5])) + (", …" if len(outside) > 5 else "")
        notes.append(f"Traces arrived for days outside this run: {shown}. Complete them with --from and --to.")
    return StageResult(
        "ingest",
        computed=sum(f.ingested for f in files),
        reused=reused + sum(f.found + f.duplicates for f in files),
        notes=tuple(notes),
    )


def _files(ctx: Context) -> list[tuple[Source, SourceFile]]:
    """Return the files of all sources. A file listed twice is returned once, with a day if either entry has one."""
    found: dict[tuple[str, str], tuple[Source, SourceFile]] = {}
    for source in ctx.sources:
        for file in source.files(ctx.first, ctx.last):
            if file.day or (file.path, file.fingerprint) not in found:
                found[file.path, file.fingerprint] = source, file
    return list(found.values())


def _rows(lake: Lake, day: str) -> int:
    return sum(p.rows() for p in lake.parts(TRACES, day))


class _Ingest:
    """Reads files into staged parts and finds duplicates across the run's files."""

    def __init__(self, ctx: Context, staging: _Staging) -> None:
        self._ctx = ctx
        self.staging = staging
        self._redacted = requested_redactions(ctx.lake)
        self._names = naming(self._redacted)
        self._there = ledger.parts_by_file(ctx.lake)
        self._refused: dict[str, pl.DataFrame] = {}

    def read(self, queries: Queries, source: Source, file: SourceFile) -> _File:
        """Stage the good rows of a file and collect the refused ones."""
        name = ledger.name_of(file)
        there = self._there.get(name, ())
        day = file.day or self._ctx.last
        state = _File(file, name, day, ledger.free_names(name, there), ledger.hashes(there))
        waiting: dict[date, list[pa.Table]] = {}
        for rows in _one_ahead(self._buffered(source.read(file), state)):
            fresh = self._admit(queries, rows, state, waiting)
            days = fresh["date"].unique()
            for day in days.to_pylist():
                table = fresh.filter(pc.equal(fresh["date"], day)) if len(days) > 1 else fresh
                waiting.setdefault(day, []).append(table)
            self.staging.add(state, waiting, last=False)
        self.staging.add(state, waiting, last=True)
        if self._ctx.config.retention.refused_days == 0:
            state.refused = [rows.with_columns(raw=pl.lit("")) for rows in state.refused]
        self._without_refused_before(state)
        return state

    def _kept(self, trace_id: str | None, raw: bytes) -> str:
        """Return a refused row to store, or an empty string if it contains the id of a redacted trace."""
        if trace_id in self._redacted or names(raw.decode("utf-8", "backslashreplace"), self._names):
            return ""
        return kept(raw, identified=trace_id is not None)

    def _without_refused_before(self, state: _File) -> None:
        """Remove refused rows that another file of the same place already had. They count as duplicates."""
        place = state.file.place
        if place is None or not state.quarantined:
            return
        if place not in self._refused:
            self._refused[place] = ledger.refused_before(self._ctx.lake, place)
        refused = _occurrences(pl.concat(state.refused))
        fresh = refused.join(_occurrences(self._refused[place]), on=_OCCURRENCE, how="anti", nulls_equal=True)
        state.refused = [fresh.sort("line").drop("occurrence")]
        state.duplicates += refused.height - fresh.height
        self._refused[place] = pl.concat([self._refused[place], fresh.select(ledger.REFUSED_KEY)])

    def _buffered(self, batches: Iterator[Batch], state: _File) -> Iterator[pa.Table]:
        """Yield good rows in larger tables and add refused rows to `state`."""
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
                    "raw": self._kept(r.trace_id, r.raw),
                }
                for r in batch.rejects
            ]
            if rejects:
                state.refused.append(pl.DataFrame(rejects, schema=REFUSED))
            held.append(batch.table)
            if sum(t.nbytes for t in held) > self.staging.buffer_bytes:
                yield pa.concat_tables(held).combine_chunks()
                held = []
        if any(t.num_rows for t in held):
            yield pa.concat_tables(held).combine_chunks()

    def _admit(self, queries: Queries, rows: pa.Table, state: _File, waiting: dict[date, list[pa.Table]]) -> pa.Table:
        """Return the new traces among some rows: gated, sampled, without duplicates, and with a column `date`."""
        rows = self._without_redacted(rows, state)
        state.rated.append(frame(rows.select(RATED)).filter(pl.col("feedback").is_not_null()))
        rows = _without_found(rows, state)
        refused = self._ctx.gates.check_traces(rows, self._ctx.last, self._ctx.today)
        state.refused.append(_quarantine(rows, "gate", refused, state.file.path))
        batch = _numbered(rows).join(refused, on="row", how="anti", maintain_order="left")
        if (sample := self._ctx.config.sample) and sample.share:
            good, batch = batch, batch.filter(places(_take(rows, batch), sample) < sample.share)
            state.sampled_out += good.height - batch.height
        arrived = [t.select(ledger.HASHES) for day in waiting.values() for t in day]
        staged = [p for parts in self.staging.parts.values() for p in parts]
        ids = batch["trace_id"].drop_nulls().unique().to_list()
        there = KeyIndex(self._ctx.lake, TRACES, "trace_id").holding(ids, self._ctx.lake.parts(TRACES))
        found = queries.run(
            "ingest/duplicates",
            {
                "batch": batch.to_arrow(),
                "traces": [*there, *staged],
                "arrived": pa.concat_tables(arrived) if arrived else empty(TRACES),
            },
        )
        repeated = frame(found)
        conflicts = repeated.filter(pl.col("reason").is_not_null()).with_columns(detail=pl.lit(CONFLICT))
        state.refused.append(_quarantine(rows, "duplicate", conflicts, state.file.path))
        state.duplicates += repeated.height - conflicts.height
        fresh = _take(rows, batch.join(repeated, on="row", how="anti", maintain_order="left"))
        state.ingested += fresh.num_rows
        return fresh.append_column("date", fresh["timestamp"].cast(pa.date32()))

    def thinned(self, files: Sequence[_File], sample: Sample, per_day: int) -> dict[str, list[Part]]:
        """Sample the staged traces of each day. Stores the shares of new strata first; returns the parts by file."""
        stratum = ["app", "generator"]
        days: dict[date, list[Part]] = {}
        for part in (p for parts in self.staging.parts.values() for p in parts):
            days.setdefault(part.date, []).append(part)
        shares: dict[date, pl.DataFrame] = {}
        for day, parts in days.items():
            known = self._ctx.lake.frame(SAMPLES, str(day), columns=[*stratum, "seen", "share"])
            seen = pl.concat([p.frame(stratum) for p in parts]).group_by(stratum).agg(seen=pl.len().cast(pl.Int64))
            new = seen.join(known, on=stratum, how="anti")
            decided = shares_of(pl.concat([known.drop("share"), new]).sort(stratum), per_day)
            shares[day] = pl.concat([known, decided.join(new, on=stratum, how="semi")])
            if new.height:
                self._ctx.lake.write(SAMPLES, "day", shares[day].sort(stratum).to_arrow(), str(day))
        kept = replace(self.staging, lake=Lake(self.staging.lake.home / "sampled"), parts={})
        for f in files:
            f.parts = ledger.free_names(f.name, self._there.get(f.name, ()))
            waiting: dict[date, list[pa.Table]] = {}
            for part in self.staging.parts[f.name]:
                rows = part.read()
                share = frame(rows.select(stratum)).join(shares[part.date], on=stratum, maintain_order="left")["share"]
                taken = rows.filter((places(rows, sample) < share).to_arrow())
                waiting.setdefault(part.date, []).append(taken)
                f.sampled_out += rows.num_rows - taken.num_rows
                f.ingested -= rows.num_rows - taken.num_rows
                kept.add(f, waiting, last=False)
            kept.add(f, waiting, last=True)
        return kept.parts

    def _without_redacted(self, rows: pa.Table, state: _File) -> pa.Table:
        """Return the rows of traces that were not redacted. The others are refused, and their text is not stored."""
        numbered = _numbered(rows)
        redacted = numbered.filter(pl.col("trace_id").is_in(self._redacted))
        if redacted.is_empty():
            return rows
        refused = redacted.select("row", reason=pl.lit("redacted"), detail=pl.lit(REDACTED))
        state.refused.append(_quarantine(rows, "gate", refused, state.file.path).with_columns(raw=pl.lit("")))
        return _take(rows, numbered.join(redacted, on="row", how="anti", maintain_order="left"))


def _occurrences(refused: pl.DataFrame) -> pl.DataFrame:
    """Number equal refused rows, since two rows may be identical."""
    return refused.with_columns(occurrence=pl.int_range(pl.len()).over(ledger.REFUSED_KEY))


def _numbered(rows: pa.Table) -> pl.DataFrame:
    """Return `trace_id`, `content_hash` and the row number of each row of a batch."""
    return frame(rows.select(ledger.HASHES)).with_row_index("row")


def _take(rows: pa.Table, numbered: pl.DataFrame) -> pa.Table:
    """Return the rows of a batch whose numbers are in `numbered`."""
    return rows if numbered.height == rows.num_rows else rows.take(numbered["row"].to_arrow())


def _without_found(rows: pa.Table, state: _File) -> pa.Table:
    """Return the rows that are not in the file's parts yet.

    A row in a part matches one row of the batch; further copies stay and count as duplicates.
    """
    if state.before.is_empty():
        return rows
    numbered = _numbered(rows)
    found = numbered.unique(ledger.HASHES, keep="first").join(state.before, on=ledger.HASHES, how="semi")
    state.before = state.before.join(found, on=ledger.HASHES, how="anti")
    state.found += found.height
    return _take(rows, numbered.join(found, on="row", how="anti", maintain_order="left"))


def places(rows: pa.Table, sample: Sample) -> pl.Series:
    """Map each trace to a number in [0, 1). The traces with numbers below a share form the sample of that share.

    The number is a hash of the trace's id, session or question, so every run computes the same one.

    Args:
        rows: Columns `trace_id`, `session` and `question`. Without a session, the trace id is used.
    """
    found = frame(rows.select(["trace_id", "session", "question"]))
    keys = {"trace": pl.col("trace_id"), "session": pl.coalesce("session", "trace_id"), "question": pl.col("question")}
    hashes = (
        xxhash.xxh3_64_intdigest(f"{sample.seed}\0{one}".encode()) for one in found.select(keys[sample.by]).to_series()
    )
    return pl.Series(values=[h / 2**64 for h in hashes], dtype=pl.Float64)


def shares_of(seen: pl.DataFrame, per_day: int) -> pl.DataFrame:
    """Compute the sampling share of each application and generator of one day.

    All get an equal number of traces. Those with fewer traces keep all, and the others divide the rest.

    Args:
        seen: A row for each application and generator; the column `seen` is its number of traces, at least 1.
        per_day: Number of traces to keep in total.

    Returns:
        `seen` with the added column `share`, fewest traces first.
    """
    shares, rest = [], float(per_day)
    rows = seen.sort("seen")
    for place, n in enumerate(rows["seen"]):
        taken = min(n, rest / (rows.height - place))
        shares.append(taken / n)
        rest -= taken
    return rows.with_columns(share=pl.Series(shares, dtype=pl.Float64))


def _one_ahead(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables, decoding the next one in a thread meanwhile."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, tables, None)
        while (table := coming.result()) is not None:
            coming = reader.submit(next, tables, None)
            yield table


def _quarantine(rows: pa.Table, stage: str, refused: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return quarantine rows for some rows of a batch. The raw text is the trace as it was read.

    Args:
        refused: Columns `row`, `reason` and `detail`.
    """
    refused = refused.sort("row")
    found = frame(rows.take(refused["row"].to_arrow()))
    raw = [kept(msgspec.json.encode(_as_read(row)), identified=True) for row in found.iter_rows(named=True)]
    return found.select(
        source=pl.lit(source),
        line="line",
        trace_id="trace_id",
        date=pl.col("timestamp").dt.date(),
        stage=pl.lit(stage),
        reason=refused["reason"],
        detail=refused["detail"],
        raw=pl.Series(raw, dtype=pl.String),
    ).cast(REFUSED)


def _as_read(row: dict[str, Any]) -> dict[str, object]:
    """Return a row in the trace format, so that a source can read the row again after a correction."""
    return {**{k: v for k, v in row.items() if k not in {"line", *NEVER_READ}}, "tags": dict(row["tags"])}


def _check_share(ctx: Context, files: list[_File]) -> None:
    excused = sum(f.excused for f in files)
    rows = sum(f.rows for f in files) - excused
    refused = sum(f.quarantined for f in files) - excused
    limit = ctx.config.gates.max_quarantined_share
    for place in {f.file.place for f in files if f.file.place}:
        ledger.drop_abandoned(ctx.lake, place)
    for f in files:
        if f.quarantined:
            ctx.lake.write(QUARANTINE, f.name, pl.concat(f.refused).to_arrow())
        else:  # an earlier run may have refused rows that pass now
            ctx.lake.drop(QUARANTINE, f.name)
    if rows and refused / rows > limit:
        where = "see above" if ctx.lake.overlay else f"read them with {ctx.sql_command('FROM quarantine')}"
        raise DataError(
            f"{refused} of {rows} new rows were refused ({refused / rows:.1%}; most: {_reasons(files, 3)}), more than "
            f"gates.max_quarantined_share = {limit:.1%}. No new trace was kept. The refused rows: {_places(files)}; "
            f"{where}. Correct the source or raise the limit."
        )


def _refused(files: list[_File]) -> list[str]:
    """Return a note on refused rows, if any: reasons and places, without texts."""
    refused = sum(f.quarantined for f in files)
    if not refused:
        return []
    rows = "1 row was" if refused == 1 else f"{refused:,} rows were"
    return [f"{rows} refused ({_reasons(files)}): {_places(files)}."]


def _places(files: list[_File]) -> str:
    """Return the file and line of the first refused rows."""
    by_file = pl.concat([pl.concat(f.refused).sort("line") for f in files if f.refused])
    places = ", ".join(f"{path}:{line}" for path, line in by_file.select("source", "line").head(PLACES).rows())
    return f"the first at {places}" if by_file.height > PLACES else places


def _left_out(files: list[_File]) -> list[str]:
    """Return a note on traces left out by the sample, if any."""
    out = sum(f.sampled_out for f in files)
    seen = out + sum(f.ingested + f.found + f.duplicates for f in files)
    return [f"{seen - out:,} of {seen:,} traces were taken: see `sample` in the config."] if out else []


def _reasons(files: list[_File], most: int | None = None) -> str:
    """Return the reasons for refused rows with their counts, most frequent first."""
    reasons = Counter(reason for f in files for rows in f.refused for reason in rows["reason"])
    return ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common(most))


def _commit(lake: Lake, staged: dict[str, list[Part]], files: list[_File]) -> dict[date, int]:
    """Move staged parts into the lake, then store feedback and ledger rows. Returns the number of new traces by day."""
    days: Counter[date] = Counter()
    for f in files:
        for part in staged[f.name]:
            days[part.date] += part.rows()
            lake.take(TRACES, part)
    _store_feedback(lake, files)
    for f in files:
        ingested = f.ingested + f.found
        counts = {"duplicates": f.duplicates, "sampled_out": f.sampled_out, "quarantined": f.quarantined}
        ledger.record(lake, f.name, f.file, ingested=ingested, **counts)
    return dict(days)


def _store_feedback(lake: Lake, files: list[_File]) -> None:
    """Store new or changed user feedback for traces in the lake."""
    given = [rows.with_columns(name=pl.lit(f.name)) for f in files for rows in f.rated if rows.height]
    if not given:
        return
    read_now = {f.name for f in files}
    columns = pl.col("timestamp").dt.date().alias("date"), "trace_id", pl.col("feedback").struct.unnest(), "name"
    rated = pl.concat(given).select(columns).unique(["date", "trace_id", "name"], keep="last", maintain_order=True)
    for (day,), of_day in rated.group_by("date", maintain_order=True):
        traces = lake.frame(TRACES, str(day), columns=["trace_id"])
        others = [part.frame() for part in lake.parts(FEEDBACK, str(day)) if part.name not in read_now]
        before = pl.concat([frame(empty(FEEDBACK)), *others], how="diagonal")
        latest = before.sort("read_at").unique("trace_id", keep="last").select(LATEST)
        for (name,), rows in of_day.group_by("name", maintain_order=True):
            fresh = rows.join(traces, on="trace_id", how="semi").join(latest, on=LATEST, how="anti", nulls_equal=True)
            if fresh.height:
                read_at = pl.lit(datetime.now(UTC))
                part = fresh.drop("name").with_columns(read_at=read_at)
                lake.write(FEEDBACK, str(name), part.to_arrow(), str(day))
                latest = pl.concat([latest.join(fresh, on="trace_id", how="anti"), fresh.select(LATEST)])
