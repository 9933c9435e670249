"""What each part of the training is worth: a short run without it beside a short run with everything."""

from collections.abc import Mapping
from pathlib import Path

from bench.accuracy.agreement import Row
from bench.accuracy.labeled import Claims
from training import prepare
from training.evaluate import evaluate
from training.recipe import Recipe, folder_of
from training.train import run

OTHERS = ("hagrid", "factcheck_gpt", "fool_me_twice")  # real sets, left out one at a time


def variants(recipe: Recipe) -> dict[str, Recipe]:
    """The recipe by what is left out of it; `everything` is the recipe itself."""
    data = recipe.data

    def without(**changes: object) -> Recipe:
        return recipe.model_copy(update={"data": data.model_copy(update=changes)})

    sources = ("authored", "natural", "twins")
    found = {"everything": recipe}
    for share in (0.5, 0.25):
        found[f"{share:.0%} of the documents"] = without(**{name: getattr(data, name) * share for name in sources})
    found |= {
        "no context": without(context=False),
        "no noise": without(noise=0),
        "no premise cut": without(nearest=0),
        "no near misses": without(near_misses=0),
        "no ranking": recipe.model_copy(update={"ranking": 0}),
    }
    for left_out in OTHERS:
        found[f"no {left_out}"] = without(sets={name: n for name, n in data.sets.items() if name != left_out})
    return found


def measure(
    name: str, recipe: Recipe, labeled: list[Path], measured: Mapping[str, Claims], texts: list[str], work: Path
) -> dict[str, Row]:
    """Trains a variant, or goes on where a killed run stopped, and evaluates it.

    Args:
        labeled: Folders with the labeled sets of others, for training.
        measured: What is measured on, by name.
        texts: Every text of it: pairs that contain one are left out.
        work: Folder of all variants.
    """
    pairs = prepare.without_leaks(prepare.build(recipe, labeled), texts)
    folder = work / name.replace(" ", "-").replace("%", "")
    return evaluate(run(recipe, pairs, folder_of(recipe.base), folder), measured)
