"""What `leadline nightly` prints at its end: a row per app and generator, what it cost, where the report is."""

from typing import Any

from rich.console import Console
from rich.table import Table

from flows.nightly import Outcome

COLUMNS = (
    "app", "generator", "traces", "groundedness", "faithful", "utilization", "context rel.", "answer rel.",
    "claims", "misused", "N/A", "unjudged", "abstained",
)  # fmt: skip


def show(outcome: Outcome) -> None:
    """Print the run's result to standard output."""
    console = Console()
    ctx = outcome.context
    table = Table(title=f"Groundedness {ctx.first} to {ctx.last}", title_style="bold", show_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in {"app", "generator"} else "right")
    for row in outcome.rows:
        table.add_row(*_cells(row))
    console.print(table)
    console.print(
        "[dim]Groundedness is the mean over scored traces ± half its 95% interval, 0 to 100. N/A traces, unjudged and"
        " abstained claims enter no mean.[/dim]"
    )
    cost = Table(title="What it took", title_style="bold", show_edge=False)
    for name in ("stage", "computed", "reused", "tokens", "seconds"):
        cost.add_column(name, justify="left" if name == "stage" else "right")
    for s in outcome.stages:
        cost.add_row(s.stage, f"{s.computed:,}", f"{s.reused:,}", f"{s.tokens_in + s.tokens_out:,}", f"{s.seconds:.1f}")
    console.print(cost)
    for note in (n for s in outcome.stages for n in s.notes):
        console.print(f"[yellow]note[/yellow] {note}", highlight=False)
    console.print(f"report     {ctx.config.report.dir / 'index.html'}", highlight=False, soft_wrap=True)
    console.print(f"warehouse  {ctx.config.warehouse}", highlight=False, soft_wrap=True)


def _cells(row: dict[str, Any]) -> list[str]:
    half = row["groundedness_half"]
    grounded = _number(row["groundedness"], 1) + (f" ± {half:.1f}" if half is not None else "")
    rates = [_number(row[c], 2) for c in ("faithfulness", "utilization", "context_relevance", "answer_relevance")]
    counts = [f"{row[c]:,}" for c in ("claims", "misused", "na", "unjudged", "abstained")]
    return [row["app"], row["generator"], f"{row['traces']:,}", grounded, *rates, *counts]


def _number(value: float | None, digits: int) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}"
