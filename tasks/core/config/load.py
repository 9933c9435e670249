"""Config files into models, with paths relative to their file."""

from dataclasses import dataclass
from pathlib import Path

from tasks.core.config.base import _absolute, load_yaml, validate
from tasks.core.config.nightly import Nightly
from tasks.core.config.recipe import Recipe
from tasks.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Chosen:
    """A recipe of a nightly config.

    Attributes:
        recipe: Its paths are absolute, but for those in the settings of plugins.
        where: The file that it stands in.
        prefix: Dotted path of the recipe inside that file.
    """

    recipe: Recipe
    where: Path
    prefix: str

    def key(self, *parts: str) -> str:
        """Dotted path of one of its keys inside the file."""
        return ".".join(filter(None, (self.prefix, *parts)))


def load_nightly(path: Path) -> Nightly:
    """The nightly config, its paths made absolute; `recipes_of` reads the recipes that it names.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    raw = validate(Nightly, load_yaml(path), path)
    if raw.recipe is None and not raw.recipes:
        raise ConfigError(path, "recipe", "is missing", "Add it, or `recipes`; docs/configuration.md lists the keys.")
    if raw.recipe is not None and raw.recipes:
        raise ConfigError(path, "recipes", "stands beside recipe", "Move that one into the list.")
    base = path.resolve().parent

    def at(p: Path) -> Path:
        return _absolute(base, p)

    update = {
        "lake": at(raw.lake),
        "warehouse": at(raw.warehouse),
        "report": raw.report.model_copy(update={"dir": at(raw.report.dir)}),
        "recipe": raw.recipe and _placed(raw.recipe, base),
        "recipes": tuple(at(r) if isinstance(r, Path) else r for r in raw.recipes),
        "sources": [at(s) if isinstance(s, Path) else s for s in raw.sources],
        "alerts": raw.alerts.model_copy(update={"notify": tuple(_placed_secret(n, base) for n in raw.alerts.notify)}),
        "promotion": raw.promotion.model_copy(update={"suite": raw.promotion.suite and at(raw.promotion.suite)}),
    }
    return raw.model_copy(update=update)


def recipes_of(config: Nightly, path: Path) -> tuple[Chosen, ...]:
    """The recipes of a nightly config, in its order, at least one.

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
        recipe = validate(Recipe, load_yaml(given) if isinstance(given, Path) else given, where, prefix)
        if recipe.name in {c.recipe.name for c in found}:
            raise ConfigError(path, "recipes", f"has two recipes named {recipe.name!r}", "Name each by its key `name`.")
        found.append(Chosen(_placed(recipe, where.resolve().parent), where, prefix))
    return tuple(found)


def load_recipe(path: Path) -> Chosen:
    """The recipe of a file.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    return Chosen(_placed(validate(Recipe, load_yaml(path), path), path.resolve().parent), path, "")


def _placed(recipe: Recipe, base: Path) -> Recipe:
    """A recipe with absolute paths of the files that it names."""
    cascade = tuple(e.model_copy(update={"judge": _absolute(base, e.judge)}) for e in recipe.cascade)
    shadow = recipe.shadow and recipe.shadow.model_copy(update={"judge": _absolute(base, recipe.shadow.judge)})
    known = recipe.grace.annotations
    grace = recipe.grace.model_copy(update={"annotations": known and _absolute(base, known)})
    grader = recipe.grades.grader
    grades = recipe.grades.model_copy(update={"grader": grader and _absolute(base, grader)})
    judge = _absolute(base, recipe.judge)
    own = {"judge": judge, "cascade": cascade, "shadow": shadow, "grace": grace, "grades": grades}
    scored = ("answer_relevance", "context_relevance", "answerability")
    return recipe.model_copy(update={**own, **{key: getattr(recipe, key).placed(base) for key in scored}})


def _placed_secret(name: str, base: Path) -> str:
    """Where a secret is, with an absolute path if it is a file."""
    kind, place = name.split(":", 1)
    return f"file:{_absolute(base, Path(place))}" if kind == "file" else name
