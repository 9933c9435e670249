"""The variants of a run: recipes with their judges, traces and days.

A nightly computes each recipe of its config with the promoted judges, or with the config's own judge if none was
promoted. If the recipe names a shadow judge, the nightly also computes that judge's sample. A backfill computes one
recipe with one judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

from tasks.core.config import Chosen, Nightly, load_recipe, recipes_of
from tasks.core.errors import UsageError
from tasks.run.scopes.promotions import Promotion, changes, counting, now, path_of
from tasks.run.scopes.scope import ALL, ALWAYS, DateRange, Scope


@dataclass(frozen=True, slots=True)
class Variant:
    """A recipe as a run computes it.

    Attributes:
        chosen: The recipe with its judge.
        scope: Traces to compute.
        days: Days to compute.
        promotion: The promotion of this judge; None if the config names the judge.
        shadow: Whether this is a shadow, computed only for comparison. It gets no report.
    """

    chosen: Chosen
    scope: Scope = ALL
    days: DateRange = ALWAYS
    promotion: Promotion | None = None
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class Unusable:
    """A variant with a judge that counted for nights to catch up with and can no longer be used.

    Attributes:
        reason: Error message that explains why.
    """

    variant: Variant
    reason: str


def nightly_variants(config: Nightly, path: Path, log: Sequence[Promotion], first: date, last: date) -> list[Variant]:
    """Return the variants of a nightly: the recipes in the order of the config, then their shadows.

    Args:
        config: The config, from `load_nightly`.
        path: The config's file.
        log: All promotions.
        first: First night of the run, including nights to catch up with.
        last: Last night.
    """
    counted: list[Variant] = []
    shadows: list[Variant] = []
    for chosen in recipes_of(config, path):
        for days, promoted in _periods(log, chosen.recipe.name, first, last):
            counted += [replace(v, days=days) for v in _counting(chosen, path, promoted)]
            if shadow := chosen.recipe.shadow:
                shadowed = with_judge(chosen, shadow.judge)
                shadows.append(Variant(shadowed, Scope(share=shadow.share), days, shadow=True))
    return [*counted, *shadows]


Promoted = dict[str | None, Promotion]


def _periods(log: Sequence[Promotion], recipe: str, first: date, last: date) -> list[tuple[DateRange, Promoted]]:
    """Split the nights of a run where the promoted judges change."""
    starts = changes(log, recipe, first, last)
    found: list[tuple[DateRange, Promoted]] = []
    for start, after in pairwise([*starts, last + timedelta(days=1)]):
        promoted = counting(log, recipe, start)
        if found and found[-1][1] == promoted:
            found[-1] = (replace(found[-1][0], last=after - timedelta(days=1)), promoted)
        else:
            found.append((DateRange(start, after - timedelta(days=1)), promoted))
    return [(ALWAYS, found[0][1])] if len(found) == 1 else found


def _counting(chosen: Chosen, path: Path, promoted: Promoted) -> list[Variant]:
    """Variants of a recipe: one for the general judge, and one for each judge with applications of its own."""
    general = promoted.get(None)
    ours = general.judge_version if general else None
    own = {app: p for app, p in sorted(promoted.items(), key=str) if app is not None and p.judge_version != ours}
    found = [
        Variant(
            with_judge(chosen, path_of(general, path)) if general else chosen,
            Scope(without=tuple(own)),
            promotion=general,
        )
    ]
    for version in dict.fromkeys(p.judge_version for p in own.values()):
        apps = tuple(app for app, p in own.items() if p.judge_version == version)
        judge = path_of(own[apps[0]], path)
        found.append(Variant(with_judge(chosen, judge), Scope(apps), promotion=own[apps[0]]))
    return found


def backfill_variants(
    config: Nightly,
    path: Path,
    log: Sequence[Promotion],
    judge: Path | None,
    recipe: str | None,
    apps: Sequence[str],
    share: float,
) -> list[Variant]:
    """Return the single variant of a backfill.

    Args:
        log: All promotions.
        judge: File of the judge that replaces the recipe's judge or cascade. None for the judge that counts today for
            the given applications.
        recipe: Name of a recipe in the config, or path of a recipe's file. Optional if the config has only one recipe.

    Raises:
        UsageError: Several recipes or judges are possible and none was named.
        ConfigError: A config file is wrong.
    """
    chosen = recipe_named(config, path, recipe)
    scope = Scope(apps=tuple(sorted(set(apps))), share=share)
    if judge is not None:
        return [Variant(with_judge(chosen, judge.resolve()), scope)]
    counts = counting(log, chosen.recipe.name, now().date())
    promoted, *others = [counts.get(app, counts.get(None)) for app in scope.apps or (None,)]
    if any((p and p.judge_version) != (promoted and promoted.judge_version) for p in others):
        raise UsageError(f"--app {', '.join(scope.apps)} have judges of their own. Name one, or the judge by --judge.")
    if promoted:
        return [Variant(with_judge(chosen, path_of(promoted, path)), scope, promotion=promoted)]
    return [Variant(chosen, scope)]


def recipe_named(config: Nightly, path: Path, recipe: str | None) -> Chosen:
    """Return a recipe by its name in the config or by the path of its file. By default, the config's only recipe.

    Raises:
        UsageError: The config has several recipes and none was named, or has no recipe of that name.
        ConfigError: The recipe's file is wrong.
    """
    if recipe is not None and recipe.endswith((".yaml", ".yml")):
        return load_recipe(Path(recipe))
    by_name = {c.recipe.name: c for c in recipes_of(config, path)}
    name = next(iter(by_name)) if recipe is None and len(by_name) == 1 else recipe
    if name not in by_name:
        which = "names none" if name is None else f"{name!r} is not one"
        raise UsageError(f"--recipe {which} of the recipes of {path}: {', '.join(by_name)}. Name one, or a file.")
    return by_name[name]


def with_judge(chosen: Chosen, judge: Path) -> Chosen:
    """Return the recipe with another judge in place of its judge or cascade."""
    return replace(chosen, recipe=chosen.recipe.model_copy(update={"judge": judge, "cascade": ()}))
