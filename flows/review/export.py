"""`leadline review export`: write claims from the published warehouse for people to label. Needs no lock."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.console import counted, emit, print_lines, save
from flows.options import App, Config, FromAll, OneDay, Output, Recipe, To, days_or_all, one_of, optional
from tasks.core.config import did_you_mean, load_nightly, recipes_of
from tasks.core.errors import UsageError
from tasks.core.labeling import SAMPLING
from tasks.core.paths import CONFIG
from tasks.publish.report import labeling
from tasks.review import formats as review_formats
from tasks.review.export import Selection, Wanted, scope_of, select
from tasks.store.warehouse import reading

WRITERS = {
    "jsonl": review_formats.json_lines,
    "csv": review_formats.as_csv,
    "label-studio": review_formats.label_studio,
    "html": labeling.page,
}
GRADED = ("jsonl", "csv")  # formats that can ask for grades


def _check(wanted: Wanted, form: str, labeling_config: Path | None) -> None:
    if wanted.need not in SAMPLING:
        raise UsageError(f"--need {wanted.need}: no such need. {did_you_mean(wanted.need, list(SAMPLING), 'needs')}")
    if wanted.reviewer == "":
        raise UsageError("--for: the name is empty. Give the reviewer's name, or leave the option out.")
    if wanted.grades and wanted.need != "random":
        raise UsageError(
            f"--grades goes with --need random, whose answers are drawn; --need {wanted.need} draws claims."
        )
    if wanted.grades and form not in GRADED:
        raise UsageError(f"--grades goes with --format {' or '.join(GRADED)}; {form} asks for labels of claims alone.")
    if labeling_config is not None and form != "label-studio":
        raise UsageError("--labeling-config goes with --format label-studio. Give both, or neither.")


def _show(found: Selection, wanted: Wanted) -> None:
    answers = len({(t.context["date"], t.trace_id) for t in found.tasks})
    grades = sum(t.grade is not None for t in found.tasks)
    asked = counted(len(found.tasks) - grades, "claim") + (f" and {counted(grades, 'grade')}" if wanted.grades else "")
    lines = [f"{asked} of {counted(answers, 'answer')} to label."]
    if found.enough:
        lines.append(f"{counted(found.enough, 'claim')} left out: labeled already.")
    if found.enough_grades:
        lines.append(f"{counted(found.enough_grades, 'grade')} left out: given already.")
    if found.more:
        lines.append(f"{counted(found.more, 'more claim')} wanted; raise --count for them.")
    if found.redacted:
        lines.append(f"{counted(found.redacted, 'answer')} left out: text redacted.")
    if not found.answers:
        lines.append("No answer of these days and apps is scored under the recipe.")
    if adjudicate := sum(t.adjudicated for t in found.tasks):
        lines.append(f"On {counted(adjudicate, 'claim')} reviewers disagree: the next label decides.")
    if found.tasks and wanted.need != "random":
        lines.append(f"Labels of these are marked {wanted.need!r}, and enter no estimate.")
    print_lines(" ".join(lines), out=Console(stderr=True))


def command(
    need: Annotated[str, optional("Which claims.", "--need", metavar="|".join(SAMPLING))],
    count: Annotated[int, typer.Option("--count", min=1, help="Claims at most; with --need random, answers.")] = 100,
    reviewers: Annotated[int, typer.Option("--reviewers", min=1, help="Labels that each claim should have.")] = 1,
    reviewer: Annotated[
        str | None, optional("Name of the reviewer; leaves out what this person has labeled.", "--for", metavar="NAME")
    ] = None,
    labeling_config: Annotated[
        Path | None, optional("Write Label Studio's labeling config here.", "--labeling-config")
    ] = None,
    seed: Annotated[str, typer.Option("--seed", help="Another word gives another draw.", metavar="WORD")] = "0",
    show_judge: Annotated[
        bool, typer.Option("--show-judge", help="Show the judge's label, which may influence people.")
    ] = False,
    grades: Annotated[
        bool, typer.Option("--grades", help="Ask for the grades of the drawn answers too; with --need random.")
    ] = False,
    recipe: Recipe = None,
    app: App = None,
    on: OneDay = None,
    start: FromAll = None,
    end: To = None,
    form: Annotated[str, one_of(*WRITERS)] = "jsonl",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Write claims for people to label, with all texts that they need.

    Example: leadline review export --need random --count 30 --format html -o labels.html
    """
    wanted = Wanted(need, count, reviewers, reviewer and reviewer.strip(), seed, show_judge, grades)
    days = days_or_all(on, start, end)
    _check(wanted, form, labeling_config)
    nightly = load_nightly(config)
    with reading(nightly.warehouse) as reader:
        name = recipe or recipes_of(nightly, config)[0].recipe.name
        found = select(reader, scope_of(reader, name, app, *days), wanted)
    if labeling_config is not None:
        save(labeling_config, review_formats.labeling_config(show_judge=wanted.show_judge).encode())
    emit(form, output, makers={form: lambda: WRITERS[form](found.tasks)})
    _show(found, wanted)
