"""`leadline review import`: people's labels into the lake, and what rests on them brought up to date."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.options import Config
from flows.runtime.progress import bar_or_silent
from flows.runtime.run import locked, on_record
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import TRACES
from tasks.publish.publish import load_warehouse, write_reports
from tasks.review.load import import_reviews
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.corrected import STAGE, correct_nights
from tasks.store.lake import Lake


def run(config: Path, file: Path) -> None:
    """Import a file and correct all nights of the lake, under every recipe of the config.

    Raises:
        UsageError: The lake holds no traces yet.
        SourceError: The file can't be read.
        DataError: Too many of its lines were refused.
        BusyError: A run holds the lake.
    """
    lake = Lake(load_nightly(config).lake)
    days = lake.values(TRACES)
    if not days:
        raise UsageError(
            f"{lake.root}: there are no traces yet whose answers {file} could label. Run leadline nightly."
        )
    first, last = (date.fromisoformat(day) for day in (days[0], days[-1]))
    contexts = build_contexts(config, first, last, progress=bar_or_silent())
    main, several = contexts[0], len(contexts) > 1
    counted = [ctx for ctx in contexts if not ctx.shadow]
    with locked(main.lake, "review import"), on_record("review", contexts, publish_failure=True) as record:
        labels = record.stage("reviews", import_reviews, main, file)
        for ctx in contexts:
            record.stage(f"{ctx.label}: {STAGE}" if several else STAGE, correct_nights, ctx)
        record.stage("warehouse", load_warehouse, main)
        report = record.stage("report", write_reports, main, others=counted[1:])
    _show(main, file, labels, report)


def _show(ctx: Context, file: Path, labels: StageResult, report: StageResult) -> None:
    console = Console()
    for note in labels.notes:
        Console(stderr=True).print(f"[yellow]note[/yellow] {note}", highlight=False)
    known = f", {labels.reused:,} known already" if labels.reused else ""
    imported = f"{file}: imported {labels.computed:,} labels{known}."
    console.print(imported, highlight=False, markup=False, soft_wrap=True)
    if report.computed:
        place = (ctx.config.report.dir / "index.html").resolve()
        nights = "1 night" if report.computed == 1 else f"{report.computed:,} nights"
        console.print(f"{nights} of the report written anew: {place}", highlight=False, markup=False, soft_wrap=True)


def command(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, CSV, or Label Studio's JSON export: docs/reviews.md.", metavar="FILE")
    ],
    config: Config = CONFIG,
) -> None:
    """Import people's labels, and correct the nights by them."""
    run(config, file)
