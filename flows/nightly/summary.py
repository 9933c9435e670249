"""The final output of `leadline nightly`: a row per app and generator, the run's cost, and the report's path."""

from functools import partial
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.console import draw_refused, emit, interval, print_lines
from flows.nightly.run import Outcome
from tasks.core.paths import refused_command
from tasks.publish.report.night.opening import in_words, title
from tasks.publish.report.text import number
from tasks.run.result import StageResult
from tasks.stats.agreement import Interval

COLUMNS = (
    "app · generator", "traces", "groundedness", "faithful", "used", "context", "answer", "claims", "misused",
    "left out",
)  # fmt: skip
CITATION_COLUMNS = (
    "app · generator", "traces", "citations", "segments", "true", "dangling", "context", "answer", "left out",
)  # fmt: skip


LEGEND = (
    "Groundedness: mean of 0 to 100 over scored traces, with its 95% interval. Used: share of chunks that"
    " decide a claim.\nContext, answer: relevance to the question. Left out of every mean: N/A traces / unjudged /"
    " abstained claims."
)
CITATION_LEGEND = (
    "Citations: mean share of segments found true over scored traces, with its 95% interval. Dangling: segments that"
    " cite no chunk\nof the trace. Left out of every mean: N/A traces / unjudged / abstained segments."
)


def show(outcome: Outcome, form: str = "table", output: Path | None = None) -> None:
    """Print the run's result."""
    emit(form, output, partial(_draw, outcome), [_as_json(outcome)])


def _draw(outcome: Outcome, console: Console) -> None:
    several = len(outcome.recipes) > 1
    for ctx, rows in outcome.recipes:
        citations = ctx.settings.method == "citations"
        what = f"{'Citation groundedness' if citations else 'Groundedness'} {ctx.first} to {ctx.last}"
        table = Table(
            title=f"{what}, recipe {escape(ctx.label)}" if several else what,
            title_style="bold",
            title_justify="left",
            box=box.SIMPLE,
        )
        for name in CITATION_COLUMNS if citations else COLUMNS:
            table.add_column(name, justify="left" if name == COLUMNS[0] else "right", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, _citation_cells(row) if citations else _cells(row)))
        console.print(table)
        console.print(f"[dim]{CITATION_LEGEND if citations else LEGEND}[/dim]")
    _show_nights(outcome, console)
    ctx = outcome.recipes[0][0]
    cost = Table(title="Run cost", title_style="bold", title_justify="left", box=box.SIMPLE, collapse_padding=True)
    for name in ("stage", "computed", "reused", "tokens", "seconds"):
        cost.add_column(name, justify="left" if name == "stage" else "right")
    for s in outcome.stages:
        cost.add_row(Text(s.stage), f"{s.computed:,}", f"{s.reused:,}", tokens(s), f"{s.seconds:.1f}")
    console.print(cost)
    if any(s.tokens_cached or s.tokens_out for s in outcome.stages):
        console.print("[dim]Tokens: read / of these spared by the prefix cache / written.[/dim]")
    if gpu_seconds := sum(s.seconds * s.gpus for s in outcome.stages):
        console.print(f"GPUs were held for {gpu_seconds / 60:.1f} GPU minutes.", highlight=False)
    for note in dict.fromkeys(n for s in outcome.stages for n in s.notes):
        console.print(f"[yellow]note[/yellow] {escape(note)}", highlight=False)
    draw_refused(outcome.refused, console)
    if outcome.refused.nights:
        print_lines(f"refused    {refused_command(ctx.config_option, *outcome.refused.nights)}", out=console)
    report = ctx.config.report.dir / "index.html"
    print_lines(f"report     {report}", f"warehouse  {ctx.config.warehouse}", out=console)


def _show_nights(outcome: Outcome, console: Console) -> None:
    """Print the alerts of earlier nights, then the opening lines of the last night."""
    several = len(outcome.recipes) > 1
    opened = {night["date"] for night in outcome.nights if night}
    for name, alert in outcome.alerts:
        if str(alert["date"]) in opened or str(alert["recovered_on"]) in opened:
            continue  # included in the opening lines below
        what = "returned" if alert["status"] == "recovered" else "alert"
        layer = f", likely layer {alert['layer']}" if alert["layer"] else ""
        of = f", recipe {escape(name)}" if several else ""
        console.print(
            f"[bold red]{what}[/bold red] {alert['date']}: {escape(title(alert))}{layer}{of}", highlight=False
        )
    for night in filter(None, outcome.nights):
        of = f", recipe {escape(night['recipe_name'])}" if several else ""
        console.print(f"\n[bold]Night of {night['date']}{of}[/bold]", highlight=False)
        for line in night["opening"]:
            command = f": {line['command']}" if line["command"] else ""
            print_lines(f"{line['about']:<12} {in_words(line)}{command}", out=console)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    ctx = outcome.recipes[0][0]
    return {
        "first": ctx.first,
        "last": ctx.last,
        "recipes": [
            {"recipe": of.recipe, "recipe_name": of.settings.name, "groups": rows, "night": night}
            for (of, rows), night in zip(outcome.recipes, outcome.nights, strict=True)
        ],
        "alerts": [{"recipe_name": name, **alert} for name, alert in outcome.alerts],
        "stages": outcome.stages,
        "refused": outcome.refused,
        "report": str(ctx.config.report.dir / "index.html"),
        "warehouse": str(ctx.config.warehouse),
    }


def tokens(stage: StageResult) -> str:
    """Format the tokens of a stage: read and, for models that write, from the cache and written."""
    counts = [stage.tokens_in, stage.tokens_cached, stage.tokens_out]
    return " / ".join(f"{n:,}" for n in (counts if any(counts[1:]) else counts[:1]))


def _cells(row: dict[str, Any]) -> list[str]:
    grounded = interval(Interval(row["groundedness"], row["low"], row["high"]), 1)
    rates = [number(row[c], 2) for c in ("faithfulness", "utilization", "context_relevance", "answer_relevance")]
    left_out = " / ".join(f"{row[c]:,}" for c in ("na", "unjudged", "abstained"))
    counts = [f"{row['claims']:,}", f"{row['misused']:,}", left_out]
    return [f"{row['app']} · {row['generator']}", f"{row['traces']:,}", grounded, *rates, *counts]


def _citation_cells(row: dict[str, Any]) -> list[str]:
    share = interval(Interval(row["citation_groundedness"], row["low"], row["high"]), 2)
    counts = [f"{row[c] or 0:,}" for c in ("segments", "segments_true", "segments_dangling")]
    rates = [number(row[c], 2) for c in ("context_relevance", "answer_relevance")]
    left_out = " / ".join(f"{row[c]:,}" for c in ("citation_na", "unjudged", "abstained"))
    return [f"{row['app']} · {row['generator']}", f"{row['traces']:,}", share, *counts, *rates, left_out]
