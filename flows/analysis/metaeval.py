"""`leadline metaeval`: unit tests for judges. Which share of a suite's conditions does a judge pass, and why not all?

As tables for a terminal, as JSON, or as a page. The suite's texts are shown, since that is what is asked for; they are
never read as markup. Left out: how results come about (`tasks/analysis/metaeval/metaeval.py`).
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.console import console, interval, table
from flows.runtime.gpu import slot
from flows.runtime.progress import Bar
from tasks import graders
from tasks.analysis.metaeval.diagnostics import diagnostics
from tasks.analysis.metaeval.metaeval import measure, name_of
from tasks.analysis.metaeval.pass_rates import OVERALL, rates
from tasks.analysis.metaeval.suite import Suite, impossible, read
from tasks.core.config import load_yaml
from tasks.core.errors import UsageError
from tasks.core.grades import GRADES, Grader
from tasks.core.paths import suite_dir
from tasks.core.progress import Silent
from tasks.publish.publish import publish_warehouse
from tasks.publish.report import metaeval as page
from tasks.publish.report.pages import words
from tasks.publish.report.text import number
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import Run
from tasks.stats.agreement import Interval

FAILURES = 10  # shown in the terminal


def run(config: Path, judges: Sequence[Path], suite: Path | None, html: Path | None, *, as_json: bool = False) -> None:
    """Run judges over a suite, keep what they say, and show the pass rates.

    Raises:
        UsageError: A judge is given twice, or needs what the suite does not have; there is no suite.
        DataError: A line of the suite is no test case.
        EngineError: A model can't be run.
        BusyError: A run holds the lake.
    """
    found = read(suite or suite_dir())
    opened = _opened(judges)
    try:
        told = _measured(config, opened, found)
    finally:
        for grader in opened.values():
            grader.close()
    if html is not None:
        page.write_page(html, found, told)
    if as_json:
        sys.stdout.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in told)
        return
    show(found, told)
    if html is not None:
        Console(stderr=True).print(f"page  {html}", highlight=False, soft_wrap=True, markup=False)


def _opened(judges: Sequence[Path]) -> dict[str, Grader]:
    """Graders by what people call them; no model is loaded."""
    found: dict[str, Grader] = {}
    for path in judges:
        grader = graders.opened(path)
        name = name_of(grader, path.stem, str(load_yaml(path).get("kind")))
        if twin := next((n for n, other in found.items() if other.version == grader.version), None):
            raise UsageError(f"--judge {path} is the same judge as {twin}, version {grader.version}. Give it once.")
        found[name if name not in found else f"{name} {grader.version[:6]}"] = grader
    return found


def _measured(config: Path, opened: Mapping[str, Grader], suite: Suite) -> list[dict[str, Any]]:
    today = datetime.now(UTC).date()
    contexts = build_contexts(config, today, today)
    ctx = contexts[0]
    record = Run("metaeval", recipes=[c.recipe for c in contexts])
    with ctx.lake.lock(f"leadline metaeval, process {os.getpid()}"):
        record.start(ctx)
        try:
            told = [_one(ctx, record, name, grader, suite) for name, grader in opened.items()]
        except BaseException as error:
            record.fail(ctx, error)
            raise
        record.end(ctx, "completed")
        publish_warehouse(ctx)
    return told


def _one(ctx: Context, record: Run, name: str, grader: Grader, suite: Suite) -> dict[str, Any]:
    """One judge's results, as they are printed; its model is freed before the next one's is loaded."""
    begun = time.perf_counter()
    progress = Bar() if sys.stderr.isatty() else Silent()
    with slot(grader.gpus, [grader]):
        try:
            stage, results = measure(ctx.lake, name, grader, suite, progress)
        finally:
            grader.close()
    record.add(ctx, replace(stage, seconds=time.perf_counter() - begun))
    counted = rates(suite, results)
    inner = grader.describe().get("judge")
    return {
        "judge": name,
        "judge_version": grader.version,
        "claims_judge_version": inner if isinstance(inner, str) else None,
        "suite": suite.name,
        "suite_version": suite.version,
        "n_cases": len(suite.cases),
        **asdict(counted),
        "why": diagnostics(counted, results),
        "notes": [*stage.notes, *_notes(suite)],
        "results": [asdict(r) for r in results],
    }


def _notes(suite: Suite) -> Iterator[str]:
    if found := impossible(suite):
        yield f"{len(found)} conditions of the suite can't be met by any grade; the first is {found[0]}."


def show(suite: Suite, told: Sequence[Mapping[str, Any]]) -> None:
    """Print results for people: pass rates side by side, then each judge by itself."""
    out = console()
    out.print(Text(f"Suite {suite.name}: {len(suite.cases):,} cases, version {suite.version}", "bold"))
    out.print(_side_by_side(told))
    out.print(Text(page.LEGEND, "dim"))
    for one in told:
        title = f"{one['judge']} ({one['judge_version']})"
        for what, of in (("type", one["types"]), ("topic", one["topics"])):
            out.print(_matrix(f"{title}: share passed by {what}", what, of))
        for line in one["why"]:
            out.print(Text(f"why   {line}"), soft_wrap=True)
        _show_failures(out, one)
        for line in one["notes"]:
            out.print(Text.assemble(("note", "yellow"), f"  {line}"), soft_wrap=True)


def _side_by_side(told: Sequence[Mapping[str, Any]]) -> Table:
    names = ["grade", *(str(one["judge"]) for one in told), "at random"]
    rows = [
        (words(grade), *(_rate(one["grades"][grade]) for one in told), _random([one["grades"][grade] for one in told]))
        for grade in (*GRADES, OVERALL)
    ]
    whole = [one["cases"] for one in told]
    rows.append(("cases, every condition met", *map(_rate, whole), _random(whole)))
    return table("Pass rates, 95% interval", names, rows, whole=True)


def _matrix(title: str, what: str, of: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    rows = [(name, *(_share(each[grade]) for grade in (*GRADES, OVERALL))) for name, each in of.items()]
    return table(title, [what, *map(words, (*GRADES, OVERALL))], rows, whole=True)


def _show_failures(out: Console, one: Mapping[str, Any]) -> None:
    missed = [r for r in one["results"] if r["outcome"] in ("failed", "unparsable")]
    rows = [(r["case_id"], r["test_type"], words(r["grade"]), r["condition"], page.got(r)) for r in missed[:FAILURES]]
    if rows:
        title = f"{one['judge']}: {len(rows)} of {len(missed):,} conditions that are not met; --html shows them all"
        out.print(table(title, ("case", "type", "grade", "wanted", "got"), rows, left=4, whole=True))


def _rate(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "n/a"
    lost = [f"{rate[what]:,} {what}" for what in ("unparsable", "unjudged") if rate[what]]
    found = Interval(rate["value"], rate["low"], rate["high"])
    return interval(found) + (f" ({', '.join(lost)})" if lost else "")


def _random(found: Sequence[Mapping[str, Any]]) -> str:
    return number(next((r["random"] for r in found if r["random"] is not None), None), 3)


def _share(rate: Mapping[str, Any]) -> str:
    return "n/a" if rate["value"] is None else f"{rate['passed']}/{rate['n']}"
