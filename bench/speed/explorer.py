"""Time the explorer of a large night in headless Chromium: opening, filtering, sorting and searching.

    python -m bench.speed.explorer [--traces 50000] [--rounds 5] [--json FILE]

Rows are generated (questions of 60 characters, answers of 600, two tags) and written as by the report. Each round opens
the page from disk in a new browser context. Times end when the page shows the new rows. The first search loads all
texts, and the second search reuses them.
"""

import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

from bench import common
from bench.common import Stages
from bench.speed.generate import WORDS
from tasks.publish.report.explorer import write_explorer
from tasks.publish.report.night.gather import METRICS
from tasks.publish.report.pages import style

CHROMIUM = "/usr/bin/chromium"
NIGHT = date(2026, 11, 1)
LABELS = ("supported", "partial", "unsupported", "contradicted", "misused", "to_check", "unjudged", "abstained")


def rows(n: int, seed: int = 7) -> list[dict[str, Any]]:
    """Generate rows like those of `sql/report/listing.sql`."""
    rng = random.Random(seed)
    start = datetime(NIGHT.year, NIGHT.month, NIGHT.day, tzinfo=UTC)
    return [
        {
            "trace_id": f"gen-{i:07d}",
            "timestamp": start + timedelta(seconds=rng.randrange(86_400)),
            "app": f"app-{i % 3}",
            "generator": f"model-{i % 4}",
            "prompt_version": f"v{i % 5}",
            "question_id": str(rng.randrange(n)),
            "has_text": True,
            "tags": [("topic", WORDS[i % 40]), ("user", f"u{i % 5000}")],
            "languages": [("en", "de", "fr")[i % 3]],
            "patterns": ["ghost_number"] if i % 9 == 0 else [],
            "diagnosis": ("healthy", "retrieval", "generator", "prompt")[i % 4],
            "review": "reviewed" if i % 50 == 0 else "not_reviewed",
            "status": "scored",
            "score": rng.uniform(0, 100),
            "groundedness_status": "scored",
            "groundedness_score": 50.0,
            "context_relevance_status": "scored",
            "context_relevance": rng.random(),
            "answer_relevance_status": "scored",
            "answer_relevance": rng.random(),
            "claims_judged": 5,
            **{f"claims_{name}": rng.randrange(2) for name in LABELS},
            "question": " ".join(rng.choices(WORDS, k=9)) + "?",
            "answer": " ".join(rng.choices(WORDS, k=90)),
        }
        for i in range(n)
    ]


def write(folder: Path, n: int) -> None:
    """Write the explorer of a night with `n` traces."""
    made = rows(n)
    (folder / "style.css").write_text(style())
    metric = METRICS["claims"][0]
    write_explorer(folder, NIGHT, made, made[:500], metric=metric, total=n, method="claims", up="", switch=())


def one_round(browser: Browser, folder: Path) -> Stages:
    """Milliseconds of each step."""
    page = browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
    found: Stages = {}

    def step(name: str, act: Callable[[], object]) -> None:
        begun = time.perf_counter()
        act()
        found[name] = {"stage": name, "wall": 1000 * (time.perf_counter() - begun)}

    step("open", lambda: _opened(page, folder))
    step("filter by diagnosis", lambda: _changed(page, lambda: page.select_option("[name=diagnosis]", "prompt")))
    step("sort by groundedness", lambda: _changed(page, lambda: page.select_option("[name=sort]", "low")))
    step("one row for each question", lambda: _changed(page, lambda: page.check("[name=group]")))
    step("first search", lambda: _changed(page, lambda: page.fill("[name=q]", "quota invoice")))
    step("second search", lambda: _changed(page, lambda: page.fill("[name=q]", "backup region")))
    page.context.close()
    return found


def _opened(page: Page, folder: Path) -> None:
    page.goto((folder / "explorer.html").as_uri())
    page.wait_for_function("document.querySelector('#rows th a')?.textContent.length > 1")


def _changed(page: Page, act: Callable[[], object]) -> None:
    """Perform an action and wait until other rows are shown with their texts."""
    page.evaluate("document.querySelector('#rows tr').dataset.old = 1")
    act()
    page.wait_for_function(
        "() => { const tr = document.querySelector('#rows tr');"
        " return tr && !tr.dataset.old && tr.querySelector('th').textContent.slice(0, 1) !== '…'; }"
    )


def main() -> None:
    parser = common.parser(__doc__, rounds=5)
    parser.add_argument("--traces", type=int, default=50_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name, sync_playwright() as playwright:
        folder = Path(name)
        write(folder, args.traces)
        size = sum(p.stat().st_size for p in folder.rglob("*.js")) / 1e6
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        rounds = [one_round(browser, folder) for _ in range(args.rounds)]
        browser.close()
    common.save(args.json, {"traces": args.traces, "megabytes": size, "rounds": rounds})
    table = common.table(f"{args.traces:,} traces, {size:.0f} MB, {args.rounds} rounds", ("step", "ms"))
    for step in rounds[0]:
        table.add_row(step, common.spread([r[step]["wall"] for r in rounds], 0))
    Console(width=80).print(table)


if __name__ == "__main__":
    main()
