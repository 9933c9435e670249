"""How `leadline calibrate` shows what it found: tables, the YAML to paste, JSON."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import yaml
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.written import counted
from tasks.analysis.calibrate import COLUMNS, Claims, Traces
from tasks.publish.report import calibration as page
from tasks.run.cascade import is_cascade
from tasks.run.context import Context
from tasks.stats.calibration import STAGES, Bands, Calibration
from tasks.stats.risk import Point, least

THRESHOLDS = ("nli", "similarity")  # kinds of judges whose file has `thresholds` and `abstain`


@dataclass(frozen=True)
class Target:
    """What is asked for: at most so many wrong ones, as a share, and how sure that has to be."""

    error: float
    confidence: float

    @property
    def least(self) -> int:
        """Labels that it takes."""
        return least(self.error, self.confidence)


@dataclass(frozen=True)
class Found:
    """What one recipe's labels gave; None where there are too few."""

    ctx: Context
    traces: Traces
    waterfall: Calibration | None
    judges: tuple[tuple[Claims, Bands | None], ...]


def shared(found: Sequence[Found]) -> list[str]:
    """What was left out of all recipes, and of all judges, alike: enough to be said once."""
    answers = [list(_remarks(f.traces)) for f in found]
    claims = [list(_picked(c)) for f in found for c, _ in f.judges]
    return [
        line
        for sections in (answers, claims)
        if len(sections) > 1
        for line in sections[0]
        if all(line in lines for lines in sections)
    ]


def show(console: Console, f: Found, target: Target, said: Collection[str] = ()) -> None:
    """Print one recipe's findings for people.

    Args:
        said: Remarks that were printed before.
    """
    c, traces = f.waterfall, f.traces
    console.print(f"[bold]Waterfall of recipe {escape(f.ctx.label)}[/bold]", highlight=False)
    for line in _remarks(traces):
        if line not in said:
            console.print(line, highlight=False)
    if c is None:
        console.print(
            f"{counted(len(traces.ids), 'labelled answer')}: at least {target.least} are needed.\n", highlight=False
        )
    else:
        console.print(f"{c.n} labelled answers, {c.n_wrong} of them wrong ({c.n_wrong / c.n:.1%}).", highlight=False)
        console.print(_signals(c, traces))
        if c.curve.points:
            console.print(_curves(c))
        console.print(_verdict(c, target), highlight=False)
    if text := _recipe_yaml(f):
        console.print(f"\n{text}", highlight=False, markup=False, soft_wrap=True)
    for claims, b in f.judges:
        console.print(f"[bold]Judge {escape(claims.judge)}[/bold]", highlight=False)
        for line in (*_picked(claims), *_judge_lines(claims, b, target)):
            if line not in said:
                console.print(line, highlight=False)
        if text := _judge_yaml(claims, b):
            console.print(f"\n{text}", highlight=False, markup=False, soft_wrap=True)


def _remarks(traces: Traces) -> Iterator[str]:
    if traces.picked:
        yield f"Left out: {counted(traces.picked, 'answer')} picked for review because of labels."
    if traces.undecided:
        yield f"Left out: {counted(traces.undecided, 'answer')} on which reviewers disagree or could not tell."


def _signals(c: Calibration, traces: Traces) -> Table:
    table = Table("stage", "column of trace_scores", box=box.SIMPLE)
    for name in ("area under ROC", "missing", "threshold"):
        table.add_column(name, justify="right")
    for i, (stage, column) in enumerate(COLUMNS.items()):
        missing = sum(map(math.isnan, traces.signals[:, i]))
        area = c.signals[i]
        row = ["n/a" if area is None else f"{area:.2f}", str(missing), f"{c.rule.thresholds[i]:.4f}" if c.rule else "-"]
        table.add_row(stage, column, *row)
    return table


def _curves(c: Calibration) -> Table:
    table = Table(box=box.SIMPLE)
    for name in ("sent", "answers", "wrong", "share wrong [95%]", "by retrieval", "random"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in page.rows(c):
        ends = row.point and f"{row.point.wrong:.1%} [{row.point.low:.1%}, {row.point.high:.1%}]"
        counts = [str(row.point.n), str(row.point.n_wrong)] if row.point else ["-", "-"]
        alone = f"{row.retrieval.wrong:.1%}" if row.retrieval else "-"
        table.add_row(f"≤ {row.coverage:.0%}", *counts, ends or "-", alone, f"{c.random:.1%}")
    table.add_row("area", "", "", f"{c.curve.area:.3f}", f"{c.by_retrieval.area:.3f}", f"{c.random:.3f}")
    return table


def _verdict(c: Calibration, target: Target) -> str:
    if c.rule is None:
        missing = f" {c.n_missing} of {c.n} lack a signal, and can't be sent at all." if c.n_missing else ""
        return (
            f"No thresholds can be shown to send at most {target.error:.1%} wrong answers (confidence "
            f"{target.confidence:g}): nothing may be sent.{missing} Thresholds of 1 send nothing."
        )
    return (
        f"Of new traces {c.rule.expected.coverage:.1%} are sent, and {_share(c.rule.expected)} of these are wrong "
        f"(each labelled trace placed without its own label).\nOf the labelled traces these thresholds send "
        f"{c.rule.fitted.n}, {c.rule.fitted.n_wrong} of them wrong."
    )


def _share(point: Point) -> str:
    return f"{point.wrong:.1%} [{point.low:.1%}, {point.high:.1%}]"


def _picked(claims: Claims) -> Iterator[str]:
    if claims.picked:
        yield f"Left out: {counted(claims.picked, 'claim')} picked for review because of labels."


def _judge_lines(claims: Claims, b: Bands | None, target: Target) -> Iterator[str]:
    if claims.without:
        yield f"Left out: {counted(claims.without, 'labelled claim')} without a probability by this judge."
    if b is None:
        labelled = counted(len(claims.supported), "labelled claim")
        yield f"{labelled} with a probability: at least {target.least} are needed.\n"
        return
    yield f"{b.n} labelled claims, {b.n_supported} of them supported ({b.n_supported / b.n:.1%})."
    limit = f"at most {target.error:.1%}"
    if b.above is None:
        yield f"Of no claims can it be shown that {limit} are not supported: nothing may be called supported."
    else:
        yield f"p_supported ≥ {b.high:.4f}: {b.above.n} claims, {_share(b.above)} not supported."
    if b.below is None:
        yield f"Of no claims can it be shown that {limit} are supported: nothing may be called unsupported."
    else:
        yield f"p_supported < {b.low:.4f}: {b.below.n} claims, {_share(b.below)} supported."
    between = b.n - sum(p.n for p in (b.above, b.below) if p)
    yield f"In between: {counted(between, 'claim')}.\n"


def _recipe_yaml(f: Found) -> str:
    """What to paste into the recipe; empty if nothing was found."""
    paste: dict[str, Any] = {}
    if f.waterfall is not None:
        rule = f.waterfall.rule
        paste["waterfall"] = dict(zip(STAGES, rule.thresholds if rule else [1.0] * len(STAGES), strict=True))
    lines = [f"# recipe {f.ctx.settings.name}", _yaml(paste)] if paste else []
    if is_cascade(f.ctx.judges):
        for claims, b in f.judges:
            if b is not None and not claims.last and (b.above or b.below):
                lines.append(
                    f"# recipe {f.ctx.settings.name}: cascade, entry {claims.stage}, after judge {claims.judge}"
                )
                end = 1.0 if b.high is None else b.high
                lines.append(_yaml({"band": list(b.abstain or (end, end))}))
    return "\n".join(lines)


def _judge_yaml(claims: Claims, b: Bands | None) -> str:
    """What to paste into the judge's file; empty if nothing was found, or its kind has no such keys."""
    if b is None or claims.kind not in THRESHOLDS or not (b.above or b.below):
        return ""
    paste = {
        "thresholds": {"supported": 1.0 if b.high is None else b.high},
        "abstain": None if b.abstain is None else list(b.abstain),
    }
    return f"# judge {claims.judge}\n{_yaml(paste)}"


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, default_flow_style=None)


def as_json(f: Found) -> str:
    """One recipe's findings on one line."""

    def finite(value: Any) -> Any:  # noqa: ANN401 (JSON has no NaN)
        if isinstance(value, dict):
            return {k: finite(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [finite(v) for v in value]
        return None if isinstance(value, float) and math.isnan(value) else value

    waterfall = None
    if f.waterfall is not None:
        rule = f.waterfall.rule
        waterfall = asdict(f.waterfall) | {
            "signals": dict(zip(STAGES, f.waterfall.signals, strict=True)),
            "thresholds": dict(zip(STAGES, rule.thresholds, strict=True)) if rule else None,
        }
    judges = [
        {"judge": c.judge, "stage": c.stage, "without_p": c.without, "picked": c.picked}
        | {"bands": None if b is None else asdict(b) | {"abstain": b.abstain}}
        for c, b in f.judges
    ]
    found = {
        "recipe": f.ctx.label,
        "labelled": len(f.traces.ids),
        "picked": f.traces.picked,
        "undecided": f.traces.undecided,
        "waterfall": waterfall,
        "judges": judges,
    }
    return json.dumps(finite(found))
