"""`leadline nightly --dry-run`: what is missing, per stage, without changing anything.

The cheap stages (ingest, claims, pairs) really run, but into a temporary directory that lies over the lake and is
thrown away; so what is counted is what the same code would compute.
"""

import tempfile
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flows.console import note
from tasks.claims.extract import extract_claims
from tasks.ingest.ingest import ingest
from tasks.judging.estimate import Estimate, JudgeEstimate, estimate
from tasks.judging.pairs import plan_pairs
from tasks.run.build import build_contexts
from tasks.run.scopes.scope import ALWAYS


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows that a run would compute, for all its recipes together, and what ingest would note: refused rows."""

    traces: int
    claims: int
    pairs: int
    judging: Estimate
    notes: tuple[str, ...]


def measure(config: Path, first: date, last: date) -> Missing:
    """Count what a run over these days would compute.

    Raises:
        LeadlineError: See the stages.
    """
    with tempfile.TemporaryDirectory(prefix="leadline-dry-run-") as overlay:
        contexts = build_contexts(config, first, last, overlay=Path(overlay))
        read = ingest(replace(contexts[0], days=ALWAYS))
        claims = sum(extract_claims(ctx, modelless=True).computed for ctx in contexts)
        pairs = sum(plan_pairs(ctx).computed for ctx in contexts)
        judging = estimate(*contexts)
        for ctx in contexts:
            ctx.close()
    return Missing(read.computed, claims, pairs, judging, read.notes)


def show(missing: Missing, first: date, last: date) -> None:
    """Print what is missing."""
    work = missing.judging
    table = Table(title=f"Missing, {first} to {last}", title_style="bold", show_edge=False)
    table.add_column("stage")
    table.add_column("to compute", justify="right")
    rows = [
        ("traces to ingest", missing.traces),
        ("claims to extract", missing.claims),
        ("pairs to plan", missing.pairs),
    ]
    for judging in work.judges:
        whose = f" by {judging.judge}" if len(work.judges) > 1 else ""
        rows += [
            (f"verdicts to judge{whose}", judging.verdicts),
            (f"joint pairs{whose}, at most", judging.joint_pairs),
        ]
    rows += [("relevance scores", work.relevance)]
    rows += [("answers to grade", work.answers)] if work.answers is not None else []
    rows += [(f"{asking.stage}, asked of a model", asking.requests) for asking in work.requests]
    rows += [("traces to score", work.scores)]
    for name, n in rows:
        table.add_row(name, f"{n:,}")
    console = Console()
    console.print(table)
    for text in missing.notes:
        note(text, console)
    costs = [_cost(judging, len(work.judges)) for judging in work.judges]
    costs += [f"Asking for {a.stage} reads about {a.tokens:,} tokens." for a in work.requests if a.requests]
    console.print(" ".join([*costs, "Nothing was changed."]), highlight=False, soft_wrap=True)


def _cost(judging: JudgeEstimate, judges: int) -> str:
    """What judging takes, in a sentence."""
    whose = f"Judging by {judging.judge}" if judges > 1 else "Judging"
    time = "no measured rate yet" if judging.minutes is None else f"about {judging.minutes:.1f} minutes"
    gpus = f", {judging.gpu_minutes:.1f} GPU minutes" if judging.gpu_minutes else ""
    which = ""
    if judging.share is not None:
        as_before = f"{judging.share:.1%} of the claims go on to it, as on the latest night"
        which = f" if {'all claims go on to it' if judging.share == 1 else as_before}"
    return f"{whose} reads about {judging.tokens:,} tokens{which}: {time}{gpus}."
