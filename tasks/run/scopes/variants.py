"""Which recipes a run computes, by which judges, over which traces and days.

A nightly computes each recipe of its config by the judges that count for it, which are those promoted, or else the
config's own; and beside it a shadow judge's sample where the recipe has one. A backfill computes one recipe, by the
judge that it is given.
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
        chosen: The recipe, with the judge that it is computed by.
        scope: The traces that it is computed for.
        days: The days that it is computed for.
        promotion: What made this judge count; None where the config names it.
        shadow: It runs beside the recipe that counts, to be compared with it: no report is made of it.
    """

    chosen: Chosen
    scope: Scope = ALL
    days: DateRange = ALWAYS
    promotion: Promotion | None = None
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class Unusable:
    """A variant whose judge counted for nights to catch up with and can't be used any more.

    Attributes:
        reason: Why it can't, for people.
    """

    variant: Variant
    reason: str


def nightly_variants(config: Nightly, path: Path, log: Sequence[Promotion], first: date, last: date) -> list[Variant]:
    """The recipes of a config, in its order, and then their shadows.

    Args:
        config: From `load_nightly`.
        path: Its file.
        log: All promotions.
        first: First night of the run.
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
    """The nights of a run, cut where another judge begins to count."""
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
    """A recipe by the judge that counts for most applications, and by those that count for some."""
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
    """The one recipe that a backfill computes.

    Args:
        log: All promotions.
        judge: File of the judge that takes the place of the recipe's own, and of a cascade; None for the judge that
            counts now for all applications, or for these.
        recipe: Its name in the config, or the path of a recipe's file; may be left out where the config has one only.

    Raises:
        UsageError: Several recipes or judges are possible and none is named.
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
    """A recipe by its name in the config, or by the path of its file; the config's only one by default.

    Raises:
        UsageError: The config has several recipes and none is named, or it has none of that name.
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
    """The recipe with another judge, which takes the place of a cascade too."""
    return replace(chosen, recipe=chosen.recipe.model_copy(update={"judge": judge, "cascade": ()}))
