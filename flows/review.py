"""`leadline review import`: people's labels into the lake, and what rests on them brought up to date."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from time import perf_counter

from rich.console import Console

from flows.runtime.progress import Bar
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError, interruption
from tasks.core.schemas import TRACES
from tasks.publish.publish import load_warehouse, publish_warehouse, write_reports
from tasks.review.load import import_reviews
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import Run
from tasks.run.result import StageResult
from tasks.scoring.corrected import correct_nights
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
    contexts = build_contexts(config, first, last, progress=Bar() if sys.stderr.isatty() else None)
    main = contexts[0]
    record = Run("review", recipes=[ctx.recipe for ctx in contexts])
    with main.lake.lock(f"leadline review import, process {os.getpid()}"):
        record.start(main)
        try:
            for result in _stages(contexts, file):
                record.add(main, result)
        except BaseException as error:
            record.fail(main, error)
            if not interruption(error):
                with suppress(Exception):  # the error that is raised matters more
                    publish_warehouse(main)  # what was refused and why can be queried
            raise
        record.end(main, "completed")
        publish_warehouse(main)
    _show(main, file, record.stages)


def _stages(contexts: tuple[Context, ...], file: Path) -> Iterator[StageResult]:
    """The stages in order, timed; a stage that several recipes have bears the recipe's name."""
    main, *_ = contexts
    counted = [ctx for ctx in contexts if not ctx.shadow]
    steps: list[tuple[str, Callable[[], StageResult]]] = [("reviews", partial(import_reviews, main, file))]
    for ctx in contexts:
        name = f"{ctx.label}: reviewed" if len(contexts) > 1 else "reviewed"
        steps.append((name, partial(correct_nights, ctx)))
    steps += [
        ("warehouse", partial(load_warehouse, main)),
        ("report", partial(write_reports, main, others=counted[1:])),
    ]
    for name, step in steps:
        begun = perf_counter()
        yield replace(step(), stage=name, seconds=perf_counter() - begun)


def _show(ctx: Context, file: Path, stages: list[StageResult]) -> None:
    labels, report = stages[0], stages[-1]
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
