"""The two arms of a comparison: resolve selectors of the command line to rows of the warehouse.

Left out: the comparison itself (`compare.py`).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from tasks.analysis.compare.results import ArmName
from tasks.analysis.frames import select
from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError
from tasks.run.selectors import DATES, Filters, Row, ambiguous, date_range, matching, parse, recipes_of, scored_version
from tasks.store.warehouse import Reader

Kind = Literal["judge", "recipe", "generator", "prompt", "dates"]
KINDS: tuple[Kind, ...] = ("judge", "recipe", "generator", "prompt", "dates")


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a comparison: the baseline or the candidate.

    Attributes:
        value: Name, version or days, as in the tables.
        recipe: Row of `recipes.sql`; the arm uses scores of this recipe.
        generator: Generator of the traces; None unless the kind is `generator`.
        prompt_version: Prompt version of the traces; None unless the kind is `prompt`.
        first: First day, from the arm (kind `dates`) or from the filters.
        last: Last day, like `first`.
    """

    kind: Kind
    value: str
    recipe: Row
    generator: str | None = None
    prompt_version: str | None = None
    first: date | None = None
    last: date | None = None

    @property
    def name(self) -> str:
        """Display name."""
        match self.kind:
            case "judge":
                return f"{self.recipe['judge_name']} {self.recipe['judge_version']}"
            case "recipe":
                return f"{self.recipe['recipe_name']} {self.recipe['recipe']}"
            case _:
                return self.value

    def scope(self, app: str | None) -> dict[str, object]:
        """Parameters for SQL on this arm."""
        return {
            "recipe": self.recipe["recipe"],
            "generator": self.generator,
            "prompt_version": self.prompt_version,
            "app": app,
            "first": self.first,
            "last": self.last,
        }

    @property
    def names(self) -> ArmName:
        """Names and days of this arm, for the results."""
        r = self.recipe
        behind = (r["recipe"], r["recipe_name"], r["judge_name"], r["judge_version"])
        return ArmName(self.kind, self.value, self.name, self.first, self.last, *behind)


def resolve(reader: Reader, selectors: tuple[str, str], filters: Filters) -> tuple[Arm, Arm, list[str]]:
    """Resolve two selectors to baseline and candidate, with notes on the choice of recipes.

    Raises:
        UsageError: A selector is unknown or ambiguous, or the selectors are of different kinds.
    """
    recipes = recipes_of(_rows(reader, "recipes", **filters.scope), filters)
    segments = _rows(reader, "segments", **filters.scope)
    (kind, a), (other, b) = (_kind_of(selector, recipes, segments) for selector in selectors)
    if kind != other:
        raise UsageError(f"{selectors[0]} is a {kind} and {selectors[1]} is a {other}: give two of a kind.")
    match kind:
        case "dates":
            return _date_ranges(reader, a, b, filters)
        case "generator" | "prompt":
            return _segments(kind, a, b, recipes, segments, filters)
        case _:
            return closest(reader, kind, _versions(kind, a, recipes), _versions(kind, b, recipes), filters)


def definition_changes(a: Row, b: Row) -> list[str]:
    """Keys in which the definitions of two recipes differ, except the judge."""
    first, second = (json.loads(row["definition"]) for row in (a, b))
    return sorted(key for key in {*first, *second} - {"judge"} if first.get(key) != second.get(key))


def closest(
    reader: Reader, kind: Kind, a: Sequence[Row], b: Sequence[Row], filters: Filters
) -> tuple[Arm, Arm, list[str]]:
    """Choose one recipe for each arm: the pair with most common traces.

    If possible, only pairs that differ in nothing but the judge are considered, or else pairs with the same name.
    """
    pairs = [(x, y) for x in a for y in b]
    candidates = (
        [(x, y) for x, y in pairs if not definition_changes(x, y)]
        or [(x, y) for x, y in pairs if x["recipe_name"] == y["recipe_name"]]
    )  # fmt: skip

    def shared(pair: tuple[Row, Row]) -> tuple[int, str]:
        x, y = (row["recipe"] for row in pair)
        return _rows(reader, "coverage", recipe_a=x, recipe_b=y, **filters.scope)[0]["n_both"], y

    best = max(candidates or pairs, key=shared)
    notes = []
    if others := sorted({x["recipe_name"] for x, _ in candidates} - {best[0]["recipe_name"]}):
        also = ", ".join(map(repr, others))
        notes.append(f"Compared under recipe {best[0]['recipe_name']!r}; --recipe selects another: {also}.")
    if changes := definition_changes(*best):
        notes.append(f"The two recipes differ in more than the judge: {', '.join(changes)}.")
    version = "judge_version" if kind == "judge" else "recipe"
    x, y = (Arm(kind, r[version], r, first=filters.first, last=filters.last) for r in best)
    return x, y, notes


def _rows(reader: Reader, name: str, **params: object) -> list[Row]:
    return list(select(reader, f"compare/{name}", **params).to_dicts())


def _kind_of(selector: str, recipes: Sequence[Row], segments: Sequence[Row]) -> tuple[Kind, str]:
    prefix, name = parse(selector, KINDS)
    for kind in KINDS:
        if prefix == kind:
            return kind, name
    values = {(s["kind"], s["value"]) for s in segments}
    found = {
        "judge": bool(matching(selector, recipes, "judge_name", "judge_version")),
        "recipe": bool(matching(selector, recipes, "recipe_name", "recipe")),
        "generator": ("generator", selector) in values,
        "prompt": ("prompt", selector) in values,
        "dates": DATES.fullmatch(selector) is not None,
    }
    kinds = [kind for kind in KINDS if found[kind]]
    if len(kinds) == 1:
        return kinds[0], selector
    if kinds:
        raise UsageError(f"{selector} could be {' or '.join(f'{k}:{selector}' for k in kinds)}. Give it with its kind.")
    names = {r["judge_name"] for r in recipes} | {r["recipe_name"] for r in recipes} | {value for _, value in values}
    raise UsageError(
        f"{selector}: no judge, recipe, generator or prompt version of this name has scores. "
        f"{did_you_mean(selector, sorted(names), 'names')}"
    )


def _versions(kind: Kind, word: str, recipes: Sequence[Row]) -> list[Row]:
    """Return the recipes with a judge, or the recipe with a name. Several versions are an error."""
    name, version = ("judge_name", "judge_version") if kind == "judge" else ("recipe_name", "recipe")
    named = matching(word, recipes, name, version)
    if not named:
        raise _unknown(kind, word, {r[name] for r in recipes})
    found = [r for r in named if r["n"]]
    if not found:
        raise UsageError(
            f"{kind}:{word}: has no scores in these days and this app. Score them first with leadline nightly or "
            "leadline backfill, or widen --from, --to and --app."
        )
    if len({r[version] for r in found}) > 1:
        raise ambiguous(f"{kind}:{word}", [scored_version(r, version) for r in found])
    return found


def _unknown(kind: Kind, word: str, names: set[str]) -> UsageError:
    return UsageError(f"{kind}:{word}: no such {kind} has scores. {did_you_mean(word, sorted(names), kind + 's')}")


def _segments(
    kind: Literal["generator", "prompt"],
    a: str,
    b: str,
    recipes: Sequence[Row],
    segments: Sequence[Row],
    filters: Filters,
) -> tuple[Arm, Arm, list[str]]:
    """Resolve two generators or prompt versions, under one recipe that has scored both."""
    counts = {(s["recipe"], s["value"]): s["n"] for s in segments if s["kind"] == kind}
    names = {value for _, value in counts}
    for value in (a, b):
        if not names:
            raise UsageError(f"{kind}:{value}: no trace that was scored names its {kind}. See docs/trace-format.md.")
        if value not in names:
            raise _unknown(kind, value, names)
    both = [r for r in recipes if counts.get((r["recipe"], a)) and counts.get((r["recipe"], b))]
    if not both:
        raise UsageError(
            f"no recipe has scored both {a} and {b} in these days and this app. Widen --from, --to and --app, or "
            "leave out --recipe."
        )
    recipe = _latest(both, lambda r: min(counts[r["recipe"], a], counts[r["recipe"], b]))
    bare = Arm(kind, "", recipe, first=filters.first, last=filters.last)
    x, y = (
        replace(bare, value=v, generator=v) if kind == "generator" else replace(bare, value=v, prompt_version=v)
        for v in (a, b)
    )
    others = ", ".join(f"{r['recipe_name']} {r['recipe']}" for r in both if r["recipe"] != recipe["recipe"])
    return x, y, [f"Other recipes have scored both too; --recipe selects one: {others}."] if others else []


def _latest(recipes: Sequence[Row], size: Callable[[Row], int]) -> Row:
    """The recipe of the latest completed night; if no recipe has one, the recipe with most traces to compare."""
    nights = [r for r in recipes if r["last_night"]]
    return max(nights or recipes, key=lambda r: (r["last_night"] or 0, size(r), r["recipe"]))


def _date_ranges(reader: Reader, a: str, b: str, filters: Filters) -> tuple[Arm, Arm, list[str]]:
    """Resolve two ranges of days, each under the recipe that was in use.

    If nights have scored a range equally far under several recipes, the first range uses the recipe that ran first, and
    the second range the recipe that ran last. Otherwise, a backfill could hide a change of the judge.
    """
    if filters.first or filters.last:
        raise UsageError("--from and --to narrow down other arms; here the arms are the days. Leave them out.")
    found = []
    for position, value in ((0, a), (-1, b)):
        first, last = date_range(value)
        rows = recipes_of(_rows(reader, "recipes", app=filters.app, first=first, last=last), filters)
        rows = [r for r in rows if r["n"]]
        if not rows:
            raise UsageError(
                f"dates:{value}: these days have no scores. Run leadline nightly --from {first} --to {last}, or "
                "name others."
            )
        names = sorted({r["recipe_name"] for r in rows}) if not filters.recipe else []
        if len(names) > 1:
            main = _latest(rows, lambda r: int(r["n"]))["recipe_name"]
            rows = [r for r in rows if r["recipe_name"] == main]
        rows = [r for r in rows if r["in_nights"]] or rows
        most = max(r["n"] for r in rows)
        complete = [r for r in rows if r["n"] == most]  # ordered by first run
        found.append((Arm("dates", f"{first}..{last}", complete[position], first=first, last=last), names))
    (x, names), (y, _) = found
    notes = []
    if len(names) > 1:
        notes.append(f"Several recipes have scored these days ({', '.join(names)}); --recipe selects one.")
    notes += [
        f"{arm.value}: {r['n']:,} of {r['n_any']:,} scored traces are scored under recipe {r['recipe_name']} "
        f"{r['recipe']}; the others are left out."
        for arm in (x, y)
        if (r := arm.recipe)["n"] < r["n_any"]
    ]
    if x.recipe["recipe_name"] != y.recipe["recipe_name"]:
        notes.append("The two ranges were scored under recipes of different names.")
    return x, y, notes
