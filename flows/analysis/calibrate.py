"""`leadline calibrate`: find thresholds from people's labels and print them for pasting. Changes no file."""

from datetime import date
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from flows.console import counted, emit_document, note
from flows.options import Config, FromAll, Output, PageForm, To, days_or_yesterday, optional
from tasks.analysis.calibrate import Calibrated, Target, calibrate_recipe
from tasks.core.config import did_you_mean
from tasks.core.errors import DataError, UsageError
from tasks.core.paths import CONFIG
from tasks.publish.documents.calibration import document
from tasks.review.load import read
from tasks.run.build import build_contexts
from tasks.run.context import Context

EVER = date(1900, 1, 1), date(2999, 12, 31)


def _read(ctx: Context, path: Path) -> pa.Table:
    """Read labels from a file without importing it. Labels belong to traces, independent of the recipe."""
    with ctx.queries() as queries:
        found, limit = read(ctx, queries, path), ctx.config.gates.max_quarantined_share
    if found.refused.num_rows:
        found.check(path, limit, f"The first is line {found.refused['line'][0]}. Fix the file or raise the limit.")
        note(f"{path}: {found.refused.num_rows} of {found.lines} lines are not valid labels.")
    return found.reviews


def _too_few(found: list[Calibrated], target: Target, labels: Path | None) -> str:
    where = "the lake" if labels is None else str(labels)
    counts = "; ".join(
        f"recipe {of.recipe}: {counted(len(of.traces.ids), 'answer')}, "
        f"{counted(len(of.judges[0][0].supported), 'claim')}"
        for of in found
    )
    answers = max(0, target.least - max(len(of.traces.ids) for of in found))
    claims = max(0, target.least - max(len(of.judges[0][0].supported) for of in found))
    left_out = max(of.traces.picked for of in found)
    picked = (
        f" {left_out} more answers were picked for review because of their labels, and don't count." if left_out else ""
    )
    return (
        f"{where} has too few labels of traces that are scored under the recipe ({counts}). --error {target.error} "
        f"with --confidence {target.confidence} takes at least {target.least} labeled answers for the waterfall "
        f"({answers} more), or as many claims for a judge ({claims} more).{picked} Label more, require less, "
        "or complete the labeled days with "
        "`leadline nightly` first."
    )


def command(
    error: Annotated[float, optional("Share of wrong answers among those sent, at most.", "--error")],
    confidence: Annotated[
        float, typer.Option("--confidence", help="Probability that the limit holds; 0.5 is as likely as not.")
    ] = 0.5,
    labels: Annotated[Path | None, optional("A file of labels instead of the imported labels.", "--labels")] = None,
    recipe: Annotated[
        str | None, optional("Name of a recipe; every recipe that counts by default.", "--recipe")
    ] = None,
    start: FromAll = None,
    end: To = None,
    form: PageForm = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Find thresholds from people's labels: which answers need no review, and when to trust a judge.

    Example: leadline calibrate --error 0.1 --confidence 0.9
    """
    first, last = days_or_yesterday(None, start, end) if start or end else EVER
    if not 0 < error < 1:
        raise UsageError(f"--error {error}: not between 0 and 1. Give a share, such as 0.1 for one in ten.")
    if not 0.5 <= confidence < 1:
        raise UsageError(f"--confidence {confidence}: not from 0.5 to below 1. Give a probability, such as 0.9.")
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    target = Target(error, confidence)
    contexts = build_contexts(config, last, last)  # use the judges of the last day for all days
    chosen = [c for c in contexts if recipe == c.label or (not c.shadow and recipe in (None, c.settings.name))]
    if not chosen:
        names = sorted({name for ctx in contexts for name in (ctx.settings.name, ctx.label)})
        raise UsageError(f"--recipe {recipe}: not in {config}. {did_you_mean(str(recipe), names, 'recipes')}")
    reviews = None if labels is None else _read(chosen[0], labels)
    found = []
    for ctx in chosen:
        with ctx.queries() as queries:
            found.append(calibrate_recipe(ctx, queries, target, first, last, reviews))
    if not any(of.waterfall or any(b for _, b in of.judges) for of in found):
        raise DataError(_too_few(found, target, labels))
    emit_document(form, output, document(found, target), (of.as_dict() for of in found))
