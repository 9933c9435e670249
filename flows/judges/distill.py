"""`leadline distill`: export verdicts of a strong judge as training data for a smaller model."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.console import console, note, print_lines, table
from flows.judges.versions import Known, find, trusted
from flows.options import Apps, Config, FromAll, To, days_or_all, optional
from tasks import graders, judges
from tasks.core.config import given_file, load_nightly
from tasks.core.errors import ConfigError, UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import GRADES, VERDICTS
from tasks.distill.examples import Examples, Wanted
from tasks.distill.export import Shares, Student, check, export
from tasks.distill.grades import Grades
from tasks.distill.selection import SPLITS
from tasks.distill.verdicts import Verdicts
from tasks.graders import llm
from tasks.judges.llm import Llm
from tasks.publish.report.night.trust import Trust
from tasks.run.scopes.scope import DateRange
from tasks.store.lake import Lake
from tasks.store.query import Queries

FILES = (".yaml", ".yml")


def _show(card: Mapping[str, Any], teacher: Known, out: Path) -> None:
    rows = [
        (form, answer, *(f"{its['kept'][split].get(answer, 0):,}" for split in SPLITS))
        for form, its in card["examples"].items()
        for answer in sorted({a for split in SPLITS for a in its["kept"][split]})
    ]
    title = f"Examples of {teacher.name} {teacher.version}"
    console().print(table(title, ("form", "answer", *SPLITS), rows, numbers=SPLITS))
    for form, its in card["examples"].items():
        gone = ", ".join(f"{reason} {n:,}" for reason, n in its["left_out"].items())
        print_lines(f"{form}: of {its['judged']:,} judged, left out: {gone or 'none'}.")
    if not card["questions"]["valid"]:
        note("No question is held out; raise --valid-share.")
    print_lines(f"{out}: the files hold texts of traces. Keep them as safe as the logs.")


def _warn_of(teacher: Known, apps: Sequence[Trust]) -> None:
    """Warn if people have not checked the teacher or found it poor, since a student learns its mistakes."""
    if not apps:
        note(f"{teacher.name} was never checked against people's labels. Its student learns its mistakes.")
    for its in apps:
        if its.poor:
            note(f"{teacher.name} is poor on {its.app}: {its.agreement} Its student learns its mistakes.")


def _student(config: Path, judge: str, file: Path | None, *, grades: bool) -> tuple[Llm | llm.Llm, Student]:
    """Load the student from a file; by default, the teacher's own file.

    Args:
        grades: Whether the student learns grades; otherwise it learns verdicts.
    """
    if file is None and not judge.endswith(FILES):
        raise UsageError(
            f"--student is missing: --judge {judge} names no file with prompts. Give the file of the "
            "judge or grader to train."
        )
    path = given_file(file or Path(judge), "graders" if grades else "judges", config)
    model = graders.load(path) if graders.described(path) else judges.load(path)
    if not isinstance(model, llm.Llm if grades else Llm):
        what, who = ("grades", "a grader of kind llm") if grades else ("verdicts on claims", "a judge of kind llm")
        problem = f"is not one that learns {what} in words"
        raise ConfigError(path, "kind", problem, f"Give {who}; see docs/distillation.md.")
    if model.config.model.thinking:
        problem = "is true, but examples hold no thoughts"
        raise ConfigError(path, "model.thinking", problem, "Give a student with thinking: false.")
    role = "grader" if grades else "judge"
    return model, Student(role, model.config.model_dump(), model.prompt_hashes, path.parent)


def _command(config: Path, judge: str, student: Path | None, wanted: Wanted, shares: Shares) -> str:
    """The command that creates the same training set again, without the output folder."""
    words: list[object] = ["leadline", "distill", "--config", config, "--judge", judge]
    options: list[tuple[str, object]] = [
        ("--student", student),
        ("--from", wanted.days.first),
        ("--to", wanted.days.last),
        *(("--app", app) for app in wanted.apps),
        ("--min-confidence", wanted.min_confidence or None),
        ("--valid-share", shares.valid),
        ("--balance", shares.balance or 0),
        ("--max", shares.most),
    ]
    for name, value in options:
        words += [name, value] if value is not None else []
    return shlex.join(map(str, words))


def command(
    *,
    judge: Annotated[str, optional("The teacher: name or version of a judge, or its file.", "--judge")],
    student: Annotated[
        Path | None, optional("The student's file or name; by default the teacher's.", "--student", metavar="FILE")
    ] = None,
    apps: Apps = None,
    start: FromAll = None,
    end: To = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", min=0, max=1, help="Only verdicts with at least this confidence.")
    ] = 0.0,
    valid_share: Annotated[float, typer.Option("--valid-share", help="Share of the questions to hold out.")] = 0.1,
    balance: Annotated[
        float, typer.Option("--balance", help="At most so many examples per example of the rarest answer; 0: no limit.")
    ] = 2.0,
    most: Annotated[int | None, optional("Examples at most.", "--max")] = None,
    output: Annotated[Path, optional("The folder to write.", "--output", "-o", metavar="DIR")],
    config: Config = CONFIG,
) -> None:
    """Write a strong judge's verdicts as training data for a smaller model.

    Example: leadline distill --judge qwen2.5-72b-h100 --student qwen3-8b-24gb -o examples
    """
    days = DateRange(*days_or_all(None, start, end))
    wanted = Wanted(days, tuple(sorted(set(apps or ()))), min_confidence)
    shares = Shares(valid_share, balance or None, most)
    check(output)
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    teacher = find(config, judge)
    grades = bool(lake.parts(GRADES, teacher.version))
    if not grades and not lake.parts(VERDICTS, teacher.version):
        raise UsageError(
            f"--judge {judge}: {teacher.name} {teacher.version} has judged nothing by itself. Judge with it first, by "
            "leadline nightly or leadline backfill. Of a cascade, name one of its judges."
        )
    if grades and min_confidence:
        raise UsageError("--min-confidence is given, but grades come without a confidence. Leave it out.")
    if not grades:
        _warn_of(teacher, trusted(lake).get(teacher.version, []))
    model, pupil = _student(config, judge, student, grades=grades)
    about = {
        "teacher": {"name": teacher.name, "kind": teacher.kind, "version": teacher.version},
        "command": _command(config, judge, student, wanted, shares),
    }
    with Queries(settings.limits.memory_limit, lake.hidden("scratch")) as queries:
        examples: Examples[Any]
        if isinstance(model, llm.Llm):
            examples = Grades(lake, queries, model, teacher.version, wanted)
        else:
            examples = Verdicts(lake, queries, model, teacher.version, wanted)
        card = export(examples, pupil, shares, about, teacher.version, output)
    _show(card, teacher, output)
