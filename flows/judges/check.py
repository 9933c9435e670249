"""`leadline judges check`: test a judge on ten claims with known labels before using it."""

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.console import emit, print_lines, table
from flows.options import Form, Output
from tasks import judges
from tasks.core import keys
from tasks.core.config import given_file
from tasks.core.errors import LeadlineError
from tasks.core.paths import suite_dir
from tasks.core.types import OUTAGE, Request, Verdict

PARSED = 0.9  # smallest share of replies with a verdict
AGREED = 9  # of ten claims, half of them supported; a judge that guesses reaches this once in 93 times


def known_claims() -> list[tuple[str, Request]]:
    """Label and request of each known claim."""
    lines = (suite_dir().parent / "check" / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["label"], _request(row["passages"], row["claim"])) for row in rows]


def _request(passages: Sequence[str], claim: str) -> Request:
    (key,) = keys.request_keys(passages, [claim])
    return Request(key, "\n\n".join(passages), claim, tuple(passages) if len(passages) > 1 else ())


def agrees(label: str, verdict: Verdict) -> bool:
    """Whether a verdict agrees with the label: supported, or else unsupported or contradicted."""
    if label == "supported":
        return verdict.label == "supported"
    return verdict.label in {"unsupported", "contradicted"}


def check(
    file: Annotated[Path, typer.Argument(help="The judge's file or name.", metavar="FILE")],
    form: Form = "table",
    output: Output = None,
) -> None:
    """Give a judge ten claims with known labels. Fit: all answered, 9 verdicts, 9 agree; otherwise exit code 1.

    Example: leadline judges check nli
    """
    file = given_file(file, "judges")
    known = known_claims()
    requests = [request for _, request in known]
    judge = judges.load(file)
    try:
        started = time.perf_counter()
        verdicts = judge.judge(requests[:1])  # loads the model
        loaded = time.perf_counter()
        verdicts += judge.judge(requests[1:])
        seconds = time.perf_counter() - loaded
    finally:
        judge.close()
    rows = [
        (label, v.label or f"failed: {v.failure}", "" if agrees(label, v) else "differs", request.hypothesis)
        for (label, request), v in zip(known, verdicts, strict=True)
    ]
    tokens = sum(v.tokens_in + v.tokens_out for v in verdicts[1:])
    answered = sum(v.failure != OUTAGE for v in verdicts)
    parsed = sum(v.label is not None for v in verdicts) / len(known)
    agreed = sum(agrees(label, v) for (label, _), v in zip(known, verdicts, strict=True))
    lines = (
        f"first claim, model loaded: {loaded - started:.1f} s; the others: {tokens / seconds:,.0f} tokens/s",
        f"memory, peak: {_memory():.2f} GiB of this machine (not of a GPU or a server)",
        f"answered {answered} of {len(known)}; parse rate {parsed:.2f}; agreement {agreed} of {len(known)}",
    )
    fit = answered == len(known) and parsed >= PARSED and agreed >= AGREED

    def draw(out: Console) -> None:
        out.print(table("", ("known", "verdict", "", "claim"), rows))
        print_lines(*lines, *([f"{file} is fit for tonight."] if fit else []), out=out)

    claims = [{"known": row[0], "verdict": row[1], "agrees": not row[2], "claim": row[3]} for row in rows]
    result = {"judge": str(file), "fit": fit, "answered": answered, "parse_rate": parsed, "agreement": agreed}
    emit(form, output, draw, [{**result, "claims": claims}])
    if not fit:
        raise LeadlineError(
            f"{file} is not fit for tonight: it needs all {len(known)} answered, a parse rate of {PARSED} and "
            f"agreement on {AGREED}. Look at the table, and at the model and the prompt that the file names."
        )


def _memory() -> float:
    """Peak memory in GiB of this process or of any child process that has ended."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return most / 2 ** (30 if sys.platform == "darwin" else 20)
