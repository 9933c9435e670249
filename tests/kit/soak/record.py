"""How long campaigns go on, and what they found: `SOAK_MINUTES=60 make soak` bounds them, and prints the table.

Trials are kept in `.soak/trials.jsonl`, so that the next soak goes on with other seeds. `python -m kit.soak.record` prints the
table of all trials that are kept.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit.root import ROOT

MINUTES = float(os.environ.get("SOAK_MINUTES", "0"))
KEPT = ROOT / ".soak" / "trials.jsonl"
FOUND = ("lost", "silent", "traceback")
# Of each campaign: trials in `make test`, and its share of a soak's minutes.
PLANS = {
    "kills": (1, 0.4), "damaged parts": (1, 0.25), "fuzzed rows": (1, 0.04), "full disk": (1, 0.1),
    "writers at once": (0, 0.17), "clock set back": (0, 0.04),
}  # fmt: skip


def campaigns() -> list[str]:
    """Those that `make test` has trials of; in a soak, all."""
    return [name for name, (few, _) in PLANS.items() if few or MINUTES]


def seeds(campaign: str) -> Iterator[int]:
    """A seed for each trial: few in `make test`, and in a soak new ones until the campaign's share of time is over."""
    few, share = PLANS[campaign]
    if not MINUTES:
        yield from range(few)
        return
    seed = len([trial for trial in kept() if trial["campaign"] == campaign])
    end = time.monotonic() + MINUTES * 60 * share
    while time.monotonic() < end:
        yield seed
        seed += 1


def keep(campaign: str, seed: int, tried: int, problems: list[str]) -> None:
    """Put a trial on record; in `make test` nothing is kept."""
    if MINUTES:
        KEPT.parent.mkdir(exist_ok=True)
        trial = {"campaign": campaign, "seed": seed, "tried": tried, "problems": problems}
        with KEPT.open("a", encoding="utf-8") as out:
            out.write(json.dumps(trial) + "\n")


def kept(path: Path = KEPT) -> list[dict[str, Any]]:
    """The trials on record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def table(trials: list[dict[str, Any]]) -> str:
    """A row for each campaign: its trials, what they tried (kills that hit, parts, rows, …), and what was found."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (2 + len(FOUND)))
    for trial in trials:
        row = counts[trial["campaign"]]
        row[0] += 1
        row[1] += trial["tried"]
        for i, kind in enumerate(FOUND, 2):
            row[i] += any(problem.startswith(kind) for problem in trial["problems"])
    lines = [f"| test | trials | tried | {' | '.join(FOUND)} |", "|---|---|---|---|---|---|"]
    lines += [f"| {name} | {' | '.join(f'{n:,}' for n in counts[name])} |" for name in PLANS if name in counts]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(kept()))
