"""`leadline noise`: judge a sample of past requests again, and measure how far a judge agrees with itself."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from flows.console import emit_document, note
from flows.options import Config, Form, From, Night, Output, To, days_or_yesterday, optional
from flows.runtime.progress import bar_or_lines
from flows.runtime.run import Runner, locked, on_record
from tasks.analysis.noise import STAGE, measure
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.publish.documents import document as doc
from tasks.publish.report.text import number
from tasks.run.build import build_contexts
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.stats.agreement import Interval


def judges_of(ctx: Context, name: str | None) -> list[Sequence[CascadeJudge]]:
    """Judges of a recipe, grouped with their passes; if a name is given, only the judge of that name."""
    by_version: dict[str, list[CascadeJudge]] = {}
    for member in ctx.judges:
        if name in (None, member.name):
            by_version.setdefault(member.judge.version, []).append(member)
    return list(by_version.values())


def document(rows: Sequence[Mapping[str, Any]]) -> doc.Document:
    """Build a document with one section per measurement."""
    sections = [
        doc.Section(
            f"noise-{i}",
            f"{row['judge']} under recipe {row['recipe_name']}, {row['from_date']} to {row['to_date']}",
            (doc.table("", ("", ""), _lines(row), text_columns=2),),
        )
        for i, row in enumerate(rows)
    ]
    return doc.Document("noise", "Noise of judges", (), "", (), tuple(sections))


def _lines(row: Mapping[str, Any]) -> Iterable[tuple[str, doc.Value]]:
    failed = f", {row['n_failed']:,} without a second label" if row["n_failed"] else ""
    yield "judged again", f"{row['n_asked']:,} requests of {row['n_traces']:,} traces{failed}"
    yield "equal labels", doc.interval(Interval(row["agreement"], row["agreement_low"], row["agreement_high"]))
    yield "Cohen's kappa", number(row["kappa"], 3)
    yield "mean |Δ p_supported|", number(row["p_change"], 4)
    flips = sorted(row["flips"], key=lambda f: -f["n"])
    yield "changed", ", ".join(f"{f['first']} → {f['second']} {f['n']:,}" for f in flips) or "none"
    yield f"noise of {row['number']}", f"{number(row['trace_sd'], 3)} in one trace ({row['n_scored']:,} scored again)"
    nights = "" if row["night_traces"] is None else f" of {row['night_traces']:,.0f} scored traces"
    yield "noise of a night's mean", f"{number(row['night_sd'], 3)}, in a night{nights}"


def _measured(ctx: Context, its: Sequence[CascadeJudge], sample: int) -> tuple[StageResult, dict[str, Any]]:
    """Measure one judge, then free its model."""
    try:
        result, row = measure(ctx, its, sample)
    finally:
        its[0].judge.close()
    for text in result.notes:
        note(text)
    return result, row


def run(
    config: Path,
    first: date,
    last: date,
    sample: int,
    judge: str | None = None,
    runner: Runner | None = None,
) -> list[dict[str, Any]]:
    """Measure every judge of every recipe, or only the named one. Returns a row of `judge_noise` per measurement.

    Raises:
        UsageError: No recipe has such a judge, or there is nothing to judge again.
        BusyError: Another run holds the lake's lock.
    """
    contexts = build_contexts(config, first, last, progress=bar_or_lines())
    chosen = [(ctx, its) for ctx in contexts for its in judges_of(ctx, judge)]
    if not chosen:
        known = sorted({m.name for ctx in contexts for m in ctx.judges})
        raise UsageError(f"--judge {judge}: no recipe of {config} has this judge. They have {', '.join(known)}.")
    rows = []
    with locked(contexts[0].lake, f"noise {first}..{last}"), on_record("noise", contexts, runner) as record:
        for ctx, its in chosen:
            with record.slot(its[0].gpus, [ctx]):
                row = record.stage_with(STAGE, partial(_measured, ctx, its, sample))
            rows.append({"judge": its[0].name, "recipe_name": ctx.settings.name, **row})
    return rows


def command(
    sample: Annotated[int, optional("Requests to judge again, at least.", "--sample", min=1)],
    judge: Annotated[str | None, optional("Name of a judge's file; every judge by default.", "--judge")] = None,
    one: Night = None,
    start: From = None,
    end: To = None,
    form: Form = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Judge past requests again: how far does a judge agree with itself?

    Example: leadline noise --sample 500 --date 2026-11-01
    """
    rows = run(config, *days_or_yesterday(one, start, end), sample, judge)
    emit_document(form, output, document(rows), rows)
