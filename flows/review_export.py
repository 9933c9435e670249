"""`leadline review export`: claims for people to label, out of the published warehouse; nothing is locked."""

import sys
from datetime import date
from pathlib import Path

from rich.console import Console

from flows.written import counted, save
from tasks.core.config import did_you_mean, load_nightly, recipes_of
from tasks.core.errors import UsageError
from tasks.core.labelling import SAMPLING
from tasks.publish.report import labelling
from tasks.review import formats as review_formats
from tasks.review.export import Selection, Wanted, scope_of, select
from tasks.store.warehouse import reading

WRITERS = {
    "jsonl": review_formats.json_lines,
    "csv": review_formats.as_csv,
    "label-studio": review_formats.label_studio,
    "html": labelling.page,
}


def run(
    config: Path,
    wanted: Wanted,
    recipe: str | None,
    app: str | None,
    days: tuple[date | None, date | None],
    output_format: str,
    output: Path | None,
    labelling_config: Path | None,
) -> None:
    """Write the claims that people should label.

    Raises:
        UsageError: An option is wrong, or there is no such recipe, or no warehouse yet.
    """
    _check(wanted, output_format, labelling_config)
    nightly = load_nightly(config)
    with reading(nightly.warehouse) as reader:
        word = recipe or recipes_of(nightly, config)[0].recipe.name
        found = select(reader, scope_of(reader, word, app, *days), wanted)
    text = WRITERS[output_format](found.tasks)
    if labelling_config is not None:
        save(labelling_config, review_formats.labelling_config(show_judge=wanted.show_judge))
    if output is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    else:
        save(output, text)
    _show(found, wanted, output)


def _check(wanted: Wanted, output_format: str, labelling_config: Path | None) -> None:
    if wanted.need not in SAMPLING:
        raise UsageError(f"--need {wanted.need}: no such need. {did_you_mean(wanted.need, list(SAMPLING), 'needs')}")
    if output_format not in WRITERS:
        remedy = did_you_mean(output_format, list(WRITERS), "formats")
        raise UsageError(f"--format {output_format}: no such format. {remedy}")
    if wanted.reviewer == "":
        raise UsageError("--for: the name is empty. Give the reviewer's name, or leave the option out.")
    if labelling_config is not None and output_format != "label-studio":
        raise UsageError("--labelling-config goes with --format label-studio. Give both, or neither.")


def _show(found: Selection, wanted: Wanted, output: Path | None) -> None:
    answers = len({(t.context["date"], t.trace_id) for t in found.tasks})
    claims = counted(len(found.tasks), "claim")
    where = f"{output}: " if output else ""
    said = [f"{where}{claims} of {counted(answers, 'answer')} to label."]
    if found.enough:
        said.append(f"{counted(found.enough, 'claim')} left out: labelled already.")
    if found.more:
        said.append(f"{counted(found.more, 'more claim')} wanted; --count asks for them.")
    if found.redacted:
        said.append(f"{counted(found.redacted, 'answer')} left out: text redacted.")
    if not found.answers:
        said.append("No answer of these days and apps is scored under the recipe.")
    if adjudicate := sum(t.adjudicated for t in found.tasks):
        said.append(f"On {counted(adjudicate, 'claim')} reviewers disagree: the next label decides.")
    if found.tasks and wanted.need != "random":
        said.append(f"Labels of these are marked {wanted.need!r}, and enter no estimate.")
    Console(stderr=True).print(" ".join(said), highlight=False, markup=False, soft_wrap=True)
