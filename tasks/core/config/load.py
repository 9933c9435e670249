"""Config files into models, with paths relative to their file."""

import os
from dataclasses import dataclass
from pathlib import Path

from tasks.core.config.base import load_yaml, validate
from tasks.core.config.nightly import Nightly
from tasks.core.config.recipe import Recipe
from tasks.core.errors import ConfigError
from tasks.core.paths import ObjectUrl

PRIVATE = 0o077  # bits that a private file does not have


@dataclass(frozen=True, slots=True)
class Chosen:
    """A recipe of a nightly config.

    Attributes:
        recipe: The recipe; its paths are absolute, except those in the settings of plug-ins.
        where: The file that contains it.
        prefix: Dotted path of the recipe inside that file.
    """

    recipe: Recipe
    where: Path
    prefix: str

    def key(self, *parts: str) -> str:
        """Dotted path of a key inside the file."""
        return ".".join(filter(None, (self.prefix, *parts)))


def load_nightly(path: Path) -> Nightly:
    """The nightly config with absolute paths; `recipes_of` reads its recipes.

    Sets the umask of this process where the config is `private`, so that only its user can read what it writes.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    raw = validate(Nightly, load_yaml(path, "lake"), path, base=path.resolve().parent)
    if raw.recipe is None and not raw.recipes:
        raise ConfigError(path, "recipe", "is missing", "Add it, or `recipes`; docs/configuration.md lists the keys.")
    if raw.recipe is not None and raw.recipes:
        raise ConfigError(path, "recipes", "is beside recipe", "Move that one into the list.")
    if isinstance(raw.lake, ObjectUrl):
        raw = raw.model_copy(update={"lake": raw.lake.copied_to(raw.lake_cache.expanduser())})
    if raw.private:
        os.umask(os.umask(PRIVATE) | PRIVATE)
    return raw


def recipes_of(config: Nightly, path: Path) -> tuple[Chosen, ...]:
    """The recipes of a nightly config in order; at least one.

    Args:
        config: From `load_nightly`.
        path: Its file.

    Raises:
        ConfigError: A recipe's file is wrong, or two recipes have one name.
    """
    if config.recipe is not None:
        return (Chosen(config.recipe, path, "recipe"),)
    found: list[Chosen] = []
    for n, given in enumerate(config.recipes):
        where, prefix = (given, "") if isinstance(given, Path) else (path, f"recipes.{n}")
        data = load_yaml(given) if isinstance(given, Path) else given
        recipe = validate(Recipe, data, where, prefix, where.resolve().parent)
        if recipe.name in {c.recipe.name for c in found}:
            raise ConfigError(path, "recipes", f"has two recipes named {recipe.name!r}", "Name each by its key `name`.")
        found.append(Chosen(recipe, where, prefix))
    return tuple(found)


def load_recipe(path: Path) -> Chosen:
    """The recipe of a file.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    return Chosen(validate(Recipe, load_yaml(path), path, base=path.resolve().parent), path, "")
