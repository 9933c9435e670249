"""`leadline retention` and `leadline forget`: remove texts from the lake, the warehouse and the report; keep numbers.

Source files and files written with `--output` are not changed. A backup keeps the texts until the next backup.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.console import print_lines, table
from flows.options import Config, DryRun, NoPrefect, optional, uses_prefect
from flows.runtime.run import locked_whole, on_record
from flows.runtime.temporary_server import flows_with
from tasks.core.config import Nightly, Retention, load_nightly
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import Table
from tasks.privacy import retention as stage
from tasks.publish.publish import warehouse_of, write_reports
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.store.lake import Lake

RETENTION, FORGET = "retention", "forget"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        stages: Results of the stages, which count the redacted rows.
        nights: Nights with removed texts, including nights that a killed run left incomplete.
        unknown: Requested trace ids that the lake does not have.
        unwritten: Nights whose pages were removed and could not be written again, because no usable recipe of the
        config
            counts for them.
        earlier: Trace ids from requests that an earlier run did not complete.
    """

    stages: tuple[StageResult, ...]
    nights: tuple[date, ...]
    unknown: tuple[str, ...] = ()
    unwritten: tuple[date, ...] = ()
    earlier: tuple[str, ...] = ()


def run(config: Path, trace_ids: Sequence[str] = (), reason: str | None = None) -> Outcome:
    """Remove texts that are due by age or, if ids are given, only the texts of these traces. Record the run in `runs`.

    Both also complete open requests by id.

    Raises:
        BusyError: Another run uses the lake. No run may read texts during the removal.
        LeadlineError: A file can't be written. The next run completes the removal.
    """
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    now = datetime.now(UTC)
    name = FORGET if trace_ids else RETENTION
    with locked_whole(lake, name):
        stage.request(lake, trace_ids, reason, now)  # from here on, these traces are refused if they arrive again
        what = _due(lake, settings, trace_ids, now)
        with on_record(name, build_contexts(config, now.date(), now.date())) as record:
            for result in stage.redact(lake, what, now):
                record.add(result)
            stages = tuple(record.stages)
            nights = stage.pending(lake)
            if nights is not None:
                _make_again(config, record.main, nights)
            unknown = tuple(t for t in trace_ids if t not in stage.held(lake, trace_ids))
            stage.finish(lake, what, now)
        unwritten = tuple(n for n in nights or () if not (settings.report.dir / str(n)).exists())
        return Outcome(stages, tuple(nights or ()), unknown, unwritten, _earlier(what, trace_ids))


def _due(lake: Lake, settings: Nightly, trace_ids: Sequence[str], now: datetime) -> stage.Due:
    """What a run removes. With trace ids, texts that are due by age are kept, since a removal can't be undone."""
    none = Retention(refused_days=None)
    return stage.due(lake, none if trace_ids else settings.retention, now.date())


def _earlier(what: stage.Due, trace_ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(what.traces.difference(trace_ids)))


def _make_again(config: Path, main: Context, nights: Sequence[date]) -> None:
    """Rebuild warehouse and pages without the texts. A new warehouse is needed because DuckDB keeps deleted bytes."""
    stage.drop_pages(main.config.report.dir, nights)
    warehouse = warehouse_of(main)
    warehouse.load(rebuild=True)
    warehouse.publish()
    if nights:
        contexts = build_contexts(
            config, min(nights), max(nights), skip_unusable=True
        )  # missing judges must not prevent the removal
        if counted := [ctx for ctx in contexts if not ctx.shadow]:
            write_reports(counted[0], others=counted[1:])


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would remove.

    Attributes:
        tables: By table name, the number of rows that would lose their text, and their days (None for tables without
            days).
        nights: Nights whose pages would be removed, and written again if the config's recipes cover them.
        known: Requested trace ids that the lake has.
        earlier: Trace ids from requests that an earlier run did not complete.
    """

    tables: Mapping[str, tuple[int, Sequence[date] | None]]
    nights: tuple[date, ...]
    known: frozenset[str]
    earlier: tuple[str, ...] = ()


def preview(config: Path, trace_ids: Sequence[str] = ()) -> Preview:
    """Determine what `run` would remove, by running the same code on a temporary overlay of the lake."""
    settings, now = load_nightly(config), datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="leadline-dry-run-") as overlay:
        lake = Lake(settings.lake, Path(overlay))
        stage.request(lake, trace_ids, None, now)
        what = _due(lake, settings, trace_ids, now)
        done = stage.redact(lake, what, now)
        written = Lake(Path(overlay))
        tables = {
            ", ".join(t.name for t in stage.TABLES[s.stage]): (s.computed, _days(written, stage.TABLES[s.stage]))
            for s in done
        }
        here = frozenset(stage.held(lake, trace_ids))
        return Preview(tables, tuple(stage.pending(lake) or ()), here, _earlier(what, trace_ids))


def _days(lake: Lake, tables: Sequence[Table]) -> list[date] | None:
    """Days of the written parts; None if the tables are not partitioned by day."""
    dated = [t for t in tables if "date" in t.partition]
    return sorted({p.date for t in dated for p in lake.parts(t)}) if dated else None


def show_preview(found: Preview, trace_ids: Sequence[str] = ()) -> None:
    """Print what would be removed."""
    rows = [(name, f"{n:,}", "" if days is None else _range(days)) for name, (n, days) in found.tables.items()]
    Console().print(table("Texts to remove", ("table", "rows", "days"), rows, numbers={"rows"}))
    for trace in trace_ids:
        here = "is here" if trace in found.known else "not in this lake; it would be refused if it arrived"
        print_lines(f"{trace}: {here}.")
    _show_earlier(found.earlier)
    if found.nights:
        print_lines(f"Pages to write again: {_range(found.nights)}.")
    print_lines("Scores stay. Nothing was changed.")


def _show_earlier(trace_ids: Sequence[str]) -> None:
    if trace_ids:
        print_lines(f"Open from an earlier request, and taken too: {', '.join(trace_ids)}.")


def _range(days: Sequence[date]) -> str:
    """Describe days: list a few days, or else give number and range."""
    if len(days) <= 3:
        return ", ".join(map(str, days))
    return f"{len(days)} days, {days[0]} to {days[-1]}"


def show(outcome: Outcome) -> None:
    """Print what was removed, and what the user still has to do."""
    n = {s.stage: s.computed for s in outcome.stages}
    print_lines(
        f"Texts removed of {n['texts']:,} traces and {n['claims']:,} claims; {n['explanations']:,} explanations and "
        f"{n['quarantine']:,} refused rows emptied. Scores stay."
    )
    _show_earlier(outcome.earlier)
    if outcome.nights:
        print_lines(f"Pages written again: {len(outcome.nights) - len(outcome.unwritten)} nights.")
    if outcome.unwritten:
        print_lines(
            f"Without pages now: {_range(outcome.unwritten)}. No recipe of the config has numbers of them, or the "
            "judge that counted is gone."
        )
    for trace in outcome.unknown:
        print_lines(f"{trace}: not in this lake. It will be refused if it arrives.")
    print_lines(
        "Not touched: source files, files made with --output, and copies of the warehouse that are open. A backup has "
        "the texts until the next `leadline backup`."
    )


def retention(dry_run: DryRun = False, no_prefect: NoPrefect = False, config: Config = CONFIG) -> None:
    """Remove texts and explanations that are older than the config allows, and complete a killed `forget`.

    Example: leadline retention --dry-run
    """
    if dry_run:
        show_preview(preview(config))
        return
    show(flows_with().retention(str(config)) if uses_prefect(no_prefect=no_prefect) else run(config))


def forget(
    trace_ids: Annotated[list[str], typer.Argument(help="Ids of the traces.", metavar="TRACE_ID")],
    reason: Annotated[str | None, optional("Why; kept in `redactions`.", "--reason")] = None,
    dry_run: DryRun = False,
    config: Config = CONFIG,
) -> None:
    """Remove the texts of these traces, and only these, everywhere and permanently.

    Example: leadline forget 7f0c2a --reason "the customer asked"
    """
    if not all(trace_id.strip() for trace_id in trace_ids):
        raise UsageError("An id is empty. Give the ids of the traces, as in the column trace_id.")
    if dry_run:
        show_preview(preview(config, trace_ids), trace_ids)
    else:
        show(run(config, trace_ids, reason))
