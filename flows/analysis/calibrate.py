"""`leadline calibrate`: thresholds from people's labels, printed for pasting; no file of the user's is changed.

Left out: how it is shown (`calibrated.py`, and as a page `tasks/publish/report/calibration.py`).
"""

import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.markup import escape

from flows.analysis.calibrated import Found, Target, as_json, shared, show
from flows.written import counted, save
from tasks.analysis.calibrate import Claims, labelled
from tasks.core.config import did_you_mean
from tasks.core.errors import DataError, UsageError
from tasks.publish.report import calibration as page
from tasks.review.load import read
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.stats.calibration import Bands, bands, calibrate

FORMATS = ("table", "json")
EVER = date(1900, 1, 1), date(2999, 12, 31)


def run(
    config: Path,
    first: date,
    last: date,
    error: float,
    confidence: float,
    recipe: str | None,
    labels: Path | None,
    output_format: str,
    output: Path | None,
) -> None:
    """Calibrate every recipe that counts, or the one that is named; a shadow by the name that runs show it under.

    Raises:
        UsageError: No such recipe or format, or a target that is none.
        DataError: Too few labels for anything.
    """
    target = Target(error, confidence)
    _check(target, output_format)
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    contexts = build_contexts(config, last, last)  # with the judges that count in the end, also of earlier days
    chosen = [c for c in contexts if recipe == c.label or (not c.shadow and recipe in (None, c.settings.name))]
    if not chosen:
        names = sorted({name for ctx in contexts for name in (ctx.settings.name, ctx.label)})
        raise UsageError(f"--recipe {recipe}: not in {config}. {did_you_mean(str(recipe), names, 'recipes')}")
    reviews = None if labels is None else _read(chosen[0], labels)
    found = [_found(ctx, target, (first, last), reviews) for ctx in chosen]
    if not any(f.waterfall or any(b for _, b in f.judges) for f in found):
        raise DataError(_too_few(found, target, labels))
    if output is not None:
        save(output, page.page([_section(f) for f in found], asdict(target)))
    if output_format == "json":
        sys.stdout.writelines(as_json(f) + "\n" for f in found)
        return
    console = Console()
    once = shared(found)
    for line in once:
        console.print(line, highlight=False)
    for f in found:
        show(console, f, target, once)


def _check(target: Target, output_format: str) -> None:
    if not 0 < target.error < 1:
        raise UsageError(f"--error {target.error}: not between 0 and 1. Give a share, such as 0.1 for one in ten.")
    if not 0.5 <= target.confidence < 1:
        raise UsageError(f"--confidence {target.confidence}: not from 0.5 to below 1. Give a probability, such as 0.9.")
    if output_format not in FORMATS:
        remedy = did_you_mean(output_format, list(FORMATS), "formats")
        raise UsageError(f"--format {output_format}: no such format. {remedy}")


def _found(ctx: Context, target: Target, days: tuple[date, date], reviews: pa.Table | None) -> Found:
    with ctx.queries() as queries:
        traces, claims = labelled(ctx, queries, *days, reviews)
    enough = len(traces.ids) >= target.least
    waterfall = (
        calibrate(traces.signals, traces.wrong, traces.questions, target.error, target.confidence) if enough else None
    )
    by_judge = tuple((c, _bands(c, target)) for c in claims)
    return Found(ctx, traces, waterfall, by_judge)


def _read(ctx: Context, path: Path) -> pa.Table:
    """The labels of a file that is not imported; they are of traces, whatever the recipe."""
    with ctx.queries() as queries:
        found, limit = read(ctx, queries, path), ctx.config.gates.max_quarantined_share
    if found.refused.num_rows:
        found.check(path, limit, f"The first is line {found.refused['line'][0]}. Mend the file or raise the limit.")
        said = f"{found.refused.num_rows} of {found.lines} lines are no labels"
        note = f"[yellow]note[/yellow] {escape(str(path))}: {said}."
        Console(stderr=True).print(note, highlight=False, soft_wrap=True)
    return found.reviews


def _bands(claims: Claims, target: Target) -> Bands | None:
    if len(claims.supported) < target.least:
        return None
    return bands(claims.p_supported, claims.supported, claims.questions, target.error, target.confidence)


def _too_few(found: list[Found], target: Target, labels: Path | None) -> str:
    where = "the lake" if labels is None else str(labels)
    counts = "; ".join(
        f"recipe {f.ctx.label}: {counted(len(f.traces.ids), 'answer')}, "
        f"{counted(len(f.judges[0][0].supported), 'claim')}"
        for f in found
    )
    left_out = max(f.traces.picked for f in found)
    picked = (
        f" {left_out} more answers were picked for review because of their labels, and don't count." if left_out else ""
    )
    return (
        f"{where} has too few labels of traces that are scored under the recipe ({counts}). --error {target.error} "
        f"with --confidence {target.confidence} takes at least {target.least} labelled answers for the waterfall, or "
        f"as many claims for a judge.{picked} Have more reviewed, ask for less, or complete the labelled days with "
        "`leadline nightly` first."
    )


def _section(f: Found) -> page.Section:
    return page.Section(f.ctx.label, f.waterfall, tuple((c.judge, b) for c, b in f.judges))
