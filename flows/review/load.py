"""`leadline review import`: import people's labels into the lake, and update the results that depend on them."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.console import counted, note, print_lines
from flows.options import Config
from flows.runtime.progress import bar_or_lines
from flows.runtime.run import locked, on_record
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import TRACES
from tasks.publish.publish import load_warehouse, write_reports
from tasks.review.load import import_reviews
from tasks.run.build import build_contexts
from tasks.scoring.corrected import STAGE, correct_nights
from tasks.store.lake import Lake


def command(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, CSV, or Label Studio's JSON export: docs/reviews.md.", metavar="FILE")
    ],
    config: Config = CONFIG,
) -> None:
    """Import people's labels, and correct the nightly means with them.

    Example: leadline review import labels.csv
    """
    lake = Lake(load_nightly(config).lake)
    days = lake.values(TRACES)
    if not days:
        raise UsageError(
            f"{lake.root}: there are no traces yet whose answers {file} could label. Run leadline nightly."
        )
    first, last = (date.fromisoformat(day) for day in (days[0], days[-1]))
    contexts = build_contexts(config, first, last, progress=bar_or_lines())
    main, several = contexts[0], len(contexts) > 1
    others = [ctx for ctx in contexts if not ctx.shadow][1:]
    with locked(main.lake, "review import"), on_record("review", contexts, publish_failure=True) as record:
        labels = record.stage("reviews", import_reviews, main, file)
        for ctx in contexts:
            record.stage(f"{ctx.label}: {STAGE}" if several else STAGE, correct_nights, ctx)
        record.stage("warehouse", load_warehouse, main)
        report = record.stage("report", write_reports, main, others=others)
    for text in labels.notes:
        note(text)
    known = f", {labels.reused:,} known already" if labels.reused else ""
    print_lines(f"{file}: imported {labels.computed:,} labels{known}.")
    if report.computed:
        place = (main.config.report.dir / "index.html").resolve()
        print_lines(f"{counted(report.computed, 'night')} of the report written again: {place}")
