"""`leadline nightly --dry-run`: what is missing, per stage, without changing anything.

The cheap stages (ingest, claims, pairs) really run, but into a temporary directory that lies over the lake and is
thrown away; so what is counted is what the same code would compute.
"""

import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tasks.stages.claims import extract_claims
from tasks.stages.context import load
from tasks.stages.estimate import Estimate, estimate
from tasks.stages.ingest import ingest
from tasks.stages.pairs import plan_pairs


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows that a run would compute."""

    traces: int
    claims: int
    pairs: int
    judging: Estimate


def measure(config: Path, first: date, last: date) -> Missing:
    """Count what a run over these days would compute.

    Raises:
        LeadlineError: See the stages.
    """
    with tempfile.TemporaryDirectory(prefix="leadline-dry-run-") as overlay:
        ctx = load(config, first, last, overlay=Path(overlay))
        traces = ingest(ctx).computed
        claims = extract_claims(ctx).computed
        pairs = plan_pairs(ctx).computed
        judging = estimate(ctx)
        ctx.close()
    return Missing(traces, claims, pairs, judging)


def show(config: Path, first: date, last: date) -> None:
    """Print what is missing."""
    missing = measure(config, first, last)
    judging = missing.judging
    table = Table(title=f"Missing, {first} to {last}", title_style="bold", show_edge=False)
    table.add_column("stage")
    table.add_column("to compute", justify="right")
    for name, n in (
        ("traces to ingest", missing.traces),
        ("claims to extract", missing.claims),
        ("pairs to plan", missing.pairs),
        ("verdicts to judge", judging.verdicts),
        ("second looks, at most", judging.second_looks),
        ("relevance scores", judging.relevance),
        ("traces to score", judging.scores),
    ):
        table.add_row(name, f"{n:,}")
    console = Console()
    console.print(table)
    minutes = "no measured rate yet" if judging.minutes is None else f"about {judging.minutes:.1f} minutes"
    console.print(f"Judging reads about {judging.tokens:,} tokens: {minutes}. Nothing was changed.", highlight=False)
