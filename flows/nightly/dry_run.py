"""`leadline nightly --dry-run`: show what each stage would compute, without changing anything.

The cheap stages (ingest, claims, pairs) really run, but write to a temporary overlay of the lake. So the counts come
from the same code as a real run.
"""

import tempfile
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

from rich.console import Console

from flows.console import console, draw_refused, emit, note, print_lines, table
from tasks.claims.extract import extract_claims
from tasks.core.errors import DataError
from tasks.core.schemas import QUARANTINE
from tasks.ingest.ingest import ingest
from tasks.judging.estimate import Estimate, JudgeEstimate, estimate
from tasks.judging.pairs import plan_pairs
from tasks.run.build import build_contexts
from tasks.run.record import Refused, refused
from tasks.run.scopes.scope import ALWAYS
from tasks.store.lake import Lake


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows that a run would compute, summed over its recipes.

    Attributes:
        notes: Notes of ingest.
        refused: Rows that ingest would refuse.
    """

    first: date
    last: date
    traces: int
    claims: int
    pairs: int
    judging: Estimate
    notes: tuple[str, ...]
    refused: Refused


def measure(config: Path, first: date, last: date) -> Missing:
    """Count what a run over these days would compute.

    Raises:
        DataError: So many rows would be refused that the run would stop. The first of them are printed.
        LeadlineError: A stage failed.
    """
    with tempfile.TemporaryDirectory(prefix="leadline-dry-run-") as overlay:
        contexts = build_contexts(config, first, last, overlay=Path(overlay))
        written = Lake(Path(overlay))
        try:
            read = ingest(replace(contexts[0], days=ALWAYS))
        except DataError:
            draw_refused(refused(written.parts(QUARANTINE)), console(stderr=True))
            raise
        claims = sum(extract_claims(ctx, modelless=True).computed for ctx in contexts)
        pairs = sum(plan_pairs(ctx).computed for ctx in contexts)
        judging = estimate(*contexts)
        for ctx in contexts:
            ctx.close()
        return Missing(
            first, last, read.computed, claims, pairs, judging, read.notes, refused(written.parts(QUARANTINE))
        )


def show(missing: Missing, form: str = "table", output: Path | None = None) -> None:
    """Print what is missing."""
    emit(form, output, partial(_draw, missing), [missing])


def _draw(missing: Missing, out: Console) -> None:
    work = missing.judging
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
    title = f"Missing, {missing.first} to {missing.last}"
    counts = ((name, f"{n:,}") for name, n in rows)
    out.print(table(title, ("stage", "to compute"), counts, numbers={"to compute"}))
    for text in missing.notes:
        note(text, out)
    draw_refused(missing.refused, out)
    costs = [_cost(judging, len(work.judges)) for judging in work.judges]
    costs += [f"Asking for {a.stage} reads about {a.tokens:,} tokens." for a in work.requests if a.requests]
    print_lines(" ".join([*costs, "Nothing was changed."]), out=out)


def _cost(judging: JudgeEstimate, judges: int) -> str:
    """Describe the estimated cost of judging in a sentence."""
    whose = f"Judging by {judging.judge}" if judges > 1 else "Judging"
    time = "no measured rate yet" if judging.minutes is None else f"about {judging.minutes:.1f} minutes"
    gpus = f", {judging.gpu_minutes:.1f} GPU minutes" if judging.gpu_minutes else ""
    which = ""
    if judging.share is not None:
        as_before = f"{judging.share:.1%} of the claims go on to it, as on the latest night"
        which = f" if {'all claims go on to it' if judging.share == 1 else as_before}"
    return f"{whose} reads about {judging.tokens:,} tokens{which}: {time}{gpus}."
