"""Ablations: each variant lacks one thing."""

from training import ablate, recipe

RECIPE = recipe.load(recipe.HERE / "recipes/ablation.yaml")


def differing(variant):
    """The keys whose values differ from the recipe's; those of `data` by themselves."""
    before, after = RECIPE.model_dump(), variant.model_dump()
    flat = [{**{f"data.{k}": v for k, v in found.pop("data").items()}, **found} for found in (before, after)]
    return {key: flat[1][key] for key in flat[0] if flat[0][key] != flat[1][key]}


def test_each_variant_lacks_one_thing():
    sets = RECIPE.data.sets
    assert {name: differing(found) for name, found in ablate.variants(RECIPE).items()} == {
        "everything": {},
        "50% of the documents": {"data.authored": 0.05, "data.natural": 0.125, "data.twins": 0.5},
        "25% of the documents": {"data.authored": 0.025, "data.natural": 0.0625, "data.twins": 0.25},
        "no context": {"data.context": False},
        "no noise": {"data.noise": 0},
        "no premise cut": {"data.nearest": 0},
        "no near misses": {"data.near_misses": 0},
        "no ranking": {"ranking": 0},
        **{f"no {left}": {"data.sets": {k: v for k, v in sets.items() if k != left}} for left in ablate.OTHERS},
    }
