"""The results of the gates: which are kept, and their pages.

Great Expectations writes a result as JSON. Its own pages, the Data Docs, load scripts and styles from six hosts, and
take longer than the validation. The pages written here show the same result, need no network and run no script.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

KEPT_RUNS = 30  # results of one suite that stay
RUN_TIME = "%Y%m%dT%H%M%S.%fZ"  # how Great Expectations writes the time of a run in a path


@dataclass(frozen=True, slots=True)
class Result:
    """One stored result.

    Attributes:
        path: `<suite>/<run name>/<run time>/<suite>.json`, below the directory of results.
        found: What Great Expectations wrote.
    """

    path: Path
    found: dict[str, Any]

    @property
    def suite(self) -> str:
        """Whose rules were checked."""
        return self.path.parts[0]

    @property
    def run(self) -> str:
        """Name of the run that checked them."""
        return self.path.parts[1]

    @property
    def at(self) -> datetime:
        """When they were checked."""
        return datetime.strptime(_run_time(self.path), RUN_TIME).replace(tzinfo=UTC)

    @property
    def page(self) -> Path:
        """Where its page is, below the directory of results."""
        return self.path.with_suffix(".html")

    @property
    def refused(self) -> dict[str, int]:
        """What broke a rule: rows by reason. A row that breaks several counts for each."""
        refused: dict[str, int] = {}
        for one in self.found["results"]:
            if rows := one["result"]["unexpected_count"]:
                reason = one["expectation_config"]["meta"]["reason"]
                refused[reason] = refused.get(reason, 0) + rows
        return refused


def prune(results: Path, kept_runs: int = KEPT_RUNS) -> list[Result]:
    """Drop all but the newest results of each suite, and any that a kill left unreadable.

    Returns:
        The others, newest first.
    """
    kept: list[Result] = []
    for suite in sorted(results.iterdir()):
        paths = sorted(suite.rglob("*.json"), key=_run_time, reverse=True)
        readable = [r for p in paths for r in _read(p, results)][:kept_runs]
        kept += readable
        for path in {p.relative_to(results) for p in paths} - {r.path for r in readable}:
            shutil.rmtree(results / path.parent)
            if not any((results / path.parent.parent).iterdir()):
                (results / path.parent.parent).rmdir()
    return sorted(kept, key=lambda r: _run_time(r.path), reverse=True)


def write_pages(directory: Path, kept: Iterable[Result]) -> None:
    """Write `index.html`, the list of results, and the page of each result below `results/` that has none yet."""
    kept = list(kept)
    for result in kept:
        if not (page := directory / "results" / result.page).exists():
            rules, version = result.found["results"], result.found["meta"]["great_expectations_version"]
            page.write_text(_render("result", title=result.suite, result=result, rules=rules, version=version), "utf-8")
    (directory / "index.html").write_text(_render("index", title="Gates", results=kept), "utf-8")


def _run_time(path: Path) -> str:
    return path.parent.name


def _read(path: Path, results: Path) -> Iterator[Result]:
    try:
        yield Result(path.relative_to(results), json.loads(path.read_bytes()))
    except ValueError:
        return


def _render(name: str, **given: object) -> str:
    return _environment().get_template(f"{name}.html.j2").render(given)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
