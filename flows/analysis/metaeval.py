"""`leadline metaeval`: unit tests for judges: the share of a suite's conditions that a judge passes, with diagnostics.

The result is shown as tables, JSON, or a page with the suite's texts, which are never interpreted as markup. Left out:
grading (`tasks/analysis/metaeval/metaeval.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from flows.console import emit_document, note
from flows.options import Config, Output, PageForm, optional
from flows.runtime.progress import bar_or_lines
from flows.runtime.run import Run, locked, on_record
from tasks import graders
from tasks.analysis.metaeval.diagnostics import JudgeReport, report
from tasks.analysis.metaeval.metaeval import STAGE, measure, name_of
from tasks.analysis.metaeval.suite import Suite, impossible, read
from tasks.core.config import given_file, load_yaml
from tasks.core.errors import UsageError
from tasks.core.grades import Grader
from tasks.core.paths import CONFIG, config_option, suite_dir
from tasks.publish.documents.metaeval import document
from tasks.run.build import build_contexts
from tasks.run.result import StageResult


def _opened(judges: Sequence[Path]) -> dict[str, Grader]:
    """Open graders by display name, without loading models."""
    found: dict[str, Grader] = {}
    for path in judges:
        grader = graders.opened(path)
        name = name_of(grader, path.stem, str(load_yaml(path).get("kind")))
        if twin := next((n for n, other in found.items() if other.version == grader.version), None):
            raise UsageError(f"--judge {path} is the same judge as {twin}, version {grader.version}. Give it once.")
        found[name if name not in found else f"{name} {grader.version[:6]}"] = grader
    return found


def _measured(config: Path, opened: Mapping[str, Grader], suite: Suite) -> list[JudgeReport]:
    today = datetime.now(UTC).date()
    contexts = build_contexts(config, today, today)
    with locked(contexts[0].lake, "metaeval"), on_record("metaeval", contexts) as record:
        return [_one(record, name, grader, suite) for name, grader in opened.items()]


def _one(record: Run, name: str, grader: Grader, suite: Suite) -> JudgeReport:
    """Measure one judge, then free its model."""

    def work() -> tuple[StageResult, JudgeReport]:
        try:
            stage, results = measure(record.main.lake, name, grader, suite, bar_or_lines())
        finally:
            grader.close()
        notes = list(stage.notes)
        if found := impossible(suite):
            notes.append(f"{len(found)} conditions of the suite can't be met by any grade; the first is {found[0]}.")
        return stage, report(name, grader, suite, results, notes)

    with record.slot(grader.gpus, [grader]):
        return record.stage_with(STAGE, work)


def command(
    judge: Annotated[
        list[Path], optional("A judge's file or name; repeat to compare several.", "--judge", metavar="FILE")
    ],
    suite: Annotated[
        Path | None, optional("File or folder of test cases; by default the suite that comes with Leadline.", "--suite")
    ] = None,
    form: PageForm = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Run unit tests on judges: which share of a suite's conditions does a judge pass?

    Example: leadline metaeval --judge nli
    """
    found = read(suite or suite_dir())
    opened = _opened([given_file(one, "judges", config) for one in judge])
    try:
        reports = _measured(config, opened, found)
    finally:
        for grader in opened.values():
            grader.close()
    emit_document(form, output, document(found, reports), reports)
    how = f"leadline judges list{config_option(config)}"
    note(f"These rates hold for this suite. How far people agree with a judge on your traces: {how}")
