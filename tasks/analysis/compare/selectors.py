"""What the two sides of a comparison are: words of the command line into rows of the warehouse.

A side names its kind (`judge:nli`, `dates:2026-11-01..2026-11-07`) or is a bare word that is looked up among all kinds.
Left out: what is computed of the sides (`compare.py`).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypeAlias

from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError

Kind = Literal["judge", "recipe", "generator", "prompt", "dates"]
KINDS: tuple[Kind, ...] = ("judge", "recipe", "generator", "prompt", "dates")
Row: TypeAlias = Mapping[str, Any]
Select: TypeAlias = Callable[
    ..., list[dict[str, Any]]
]  # of a file of `sql/analysis/compare/` by name, with its parameters
LEAST_PREFIX = 4  # characters of a hash
_DATES = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.\.(\d{4}-\d{2}-\d{2}))?")


@dataclass(frozen=True, slots=True)
class Filters:
    """What both sides are narrowed down to; None is all."""

    recipe: str | None = None
    app: str | None = None
    first: date | None = None
    last: date | None = None

    @property
    def scope(self) -> dict[str, object]:
        """Parameters of the SQL."""
        return {"app": self.app, "first": self.first, "last": self.last}


@dataclass(frozen=True, slots=True)
class Side:
    """One side, found.

    Attributes:
        value: Its name, version or days, as the tables have it.
        recipe: Row of `recipes.sql` under which it is looked at.
        generator: Its traces are those of this one; None where it is another kind, as the next one.
        first: Its days are from here on; those of the filters where it is another kind.
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
        """What people call it."""
        match self.kind:
            case "judge":
                return f"{self.recipe['judge_name']} {self.recipe['judge_version']}"
            case "recipe":
                return f"{self.recipe['recipe_name']} {self.recipe['recipe']}"
            case _:
                return self.value

    def scope(self, app: str | None) -> dict[str, object]:
        """Parameters of the SQL of one side."""
        return {
            "recipe": self.recipe["recipe"],
            "generator": self.generator,
            "prompt_version": self.prompt_version,
            "app": app,
            "first": self.first,
            "last": self.last,
        }


def resolve(select: Select, words: tuple[str, str], filters: Filters) -> tuple[Side, Side, list[str]]:
    """Both sides, and what should be said of how they were found.

    Raises:
        UsageError: A side is unknown, could be several things, or the two are of different kinds.
    """
    recipes = wanted(select("recipes", **filters.scope), filters)
    segments = select("segments", **filters.scope)
    a, b = (_kind_of(word, recipes, segments) for word in words)
    if a[0] != b[0]:
        raise UsageError(
            f"{words[0]} is a {a[0]} and {words[1]} is a {b[0]}: only like can be compared. Give two of a kind."
        )
    match a[0]:
        case "dates":
            return _periods(a[1], b[1], select, filters)
        case "generator" | "prompt" as kind:
            return _segments(kind, a[1], b[1], recipes, segments, filters)
        case kind:
            return measured(select, kind, _versions(kind, a[1], recipes), _versions(kind, b[1], recipes), filters)


def differences(a: Row, b: Row) -> list[str]:
    """Keys of two recipes' definitions that differ."""
    first, second = (json.loads(row["definition"]) for row in (a, b))
    return sorted(key for key in {*first, *second} if first.get(key) != second.get(key))


def wanted(recipes: Sequence[Row], filters: Filters) -> list[Row]:
    """The recipes that --recipe names; all where it is not given."""
    if not recipes:
        raise UsageError("the warehouse has no scores yet. Run `leadline nightly` first.")
    if filters.recipe is None:
        return list(recipes)
    found = [r for r in recipes if matches(filters.recipe, r["recipe_name"], r["recipe"])]
    if not found:
        known = sorted({r["recipe_name"] for r in recipes})
        raise UsageError(f"--recipe {filters.recipe}: no such recipe. {did_you_mean(filters.recipe, known, 'recipes')}")
    return found


def matches(word: str, name: str, version: str) -> bool:
    """Whether a word means this one: by its name, or by the first letters of its version."""
    return word == name or (len(word) >= LEAST_PREFIX and version.startswith(word))


def _kind_of(word: str, recipes: Sequence[Row], segments: Sequence[Row]) -> tuple[Kind, str]:
    """The kind of a side and what it names."""
    prefix, colon, rest = word.partition(":")
    for kind in KINDS:
        if colon and prefix == kind:
            return kind, rest
    known: dict[Kind, set[str]] = {
        "judge": {r["judge_name"] for r in recipes if matches(word, r["judge_name"], r["judge_version"])},
        "recipe": {r["recipe_name"] for r in recipes if matches(word, r["recipe_name"], r["recipe"])},
        "generator": {s["value"] for s in segments if s["kind"] == "generator" and s["value"] == word},
        "prompt": {s["value"] for s in segments if s["kind"] == "prompt" and s["value"] == word},
        "dates": {word for _ in [0] if _DATES.fullmatch(word)},
    }
    could = [kind for kind in KINDS if known[kind]]
    if len(could) == 1:
        return could[0], word
    if could:
        raise UsageError(f"{word} could be {' or '.join(f'{k}:{word}' for k in could)}. Give it with its kind.")
    names = {r["judge_name"] for r in recipes} | {r["recipe_name"] for r in recipes} | {s["value"] for s in segments}
    raise UsageError(
        f"{word}: no judge, recipe, generator or prompt version of this name has scores. "
        f"{did_you_mean(word, sorted(names), 'names')}"
    )


def _versions(kind: Kind, value: str, recipes: Sequence[Row]) -> list[Row]:
    """The recipes of one version of a judge, or the one recipe."""
    name, version = ("judge_name", "judge_version") if kind == "judge" else ("recipe_name", "recipe")
    named = [r for r in recipes if matches(value, r[name], r[version])]
    if not named:
        known = sorted({r[name] for r in recipes})
        raise UsageError(f"{kind}:{value}: no such {kind} has scores. {did_you_mean(value, known, kind + 's')}")
    found = [r for r in named if r["n"]]
    if not found:
        raise UsageError(
            f"{kind}:{value}: has no scores in the days and app asked for. Score them first with leadline nightly or "
            "leadline backfill, or widen --from, --to and --app."
        )
    versions = {r[version] for r in found}
    if len(versions) > 1:
        several = "; ".join(told(r, version) for r in found)
        raise UsageError(f"{kind}:{value} has {len(versions)} versions: {several}. Give one by its hash.")
    return found


def told(row: Row, version: str) -> str:
    """One of several versions, for a message; `version` is the column that tells them apart."""
    return (
        f"{row[version]} ({row['first_date']} to {row['last_date']}, {row['n']:,} traces, recipe "
        f"{row['recipe_name']!r}, judge {row['judge_name']!r})"
    )


def measured(
    select: Select, kind: Kind, a: Sequence[Row], b: Sequence[Row], filters: Filters
) -> tuple[Side, Side, list[str]]:
    """Two recipes: those that are named, or of two judges those that differ in nothing else and share most traces."""
    pairs = [(x, y) for x in a for y in b]
    alike = [(x, y) for x, y in pairs if not {*differences(x, y)} - {"judge"}]
    named = [(x, y) for x, y in pairs if x["recipe_name"] == y["recipe_name"]]
    shared = {
        (x["recipe"], y["recipe"]): select("coverage", recipe_a=x["recipe"], recipe_b=y["recipe"], **filters.scope)[0][
            "n_both"
        ]
        for x, y in alike or named or pairs
    }
    best = max(alike or named or pairs, key=lambda p: (shared[p[0]["recipe"], p[1]["recipe"]], p[1]["recipe"]))
    notes = []
    if others := sorted({x["recipe_name"] for x, _ in alike or named} - {best[0]["recipe_name"]}):
        also = ", ".join(map(repr, others))
        notes.append(f"Compared under recipe {best[0]['recipe_name']!r}; --recipe asks for another: {also}.")
    if other := [d for d in differences(*best) if d != "judge"]:
        notes.append(f"The two recipes differ in more than the judge: {', '.join(other)}.")
    x, y = (
        Side(kind, r["judge_version" if kind == "judge" else "recipe"], r, first=filters.first, last=filters.last)
        for r in best
    )
    return x, y, notes


def _segments(
    kind: Literal["generator", "prompt"],
    a: str,
    b: str,
    recipes: Sequence[Row],
    segments: Sequence[Row],
    filters: Filters,
) -> tuple[Side, Side, list[str]]:
    """Two generators or prompt versions, under the one recipe that has scored both."""
    counts = {(s["recipe"], s["value"]): s["n"] for s in segments if s["kind"] == kind}
    for value in (a, b):
        if (known := sorted({v for _, v in counts})) and value not in known:
            raise UsageError(f"{kind}:{value}: no such {kind} has scores. {did_you_mean(value, known, kind + 's')}")
        if not known:
            raise UsageError(f"{kind}:{value}: no trace that was scored names its {kind}. See docs/trace-format.md.")
    having = [r for r in recipes if counts.get((r["recipe"], a)) and counts.get((r["recipe"], b))]
    if not having:
        raise UsageError(
            f"no recipe has scored both {a} and {b} in the days and app asked for. Widen --from, --to and --app, or "
            "leave out --recipe."
        )
    recipe = _latest(having, lambda r: min(counts[r["recipe"], a], counts[r["recipe"], b]))
    bare = Side(kind, "", recipe, first=filters.first, last=filters.last)
    x, y = (
        replace(bare, value=v, generator=v) if kind == "generator" else replace(bare, value=v, prompt_version=v)
        for v in (a, b)
    )
    return x, y, _also(recipe, having)


def _latest(recipes: Sequence[Row], size: Callable[[Row], int]) -> Row:
    """The recipe of the latest completed night among those given, or else the one with most to compare."""
    nights = [r for r in recipes if r["last_night"]]
    return max(nights or recipes, key=lambda r: (r["last_night"] or 0, size(r), r["recipe"]))


def _also(recipe: Row, having: Iterable[Row]) -> list[str]:
    others = [f"{r['recipe_name']} {r['recipe']}" for r in having if r["recipe"] != recipe["recipe"]]
    return [f"Other recipes have scored both too; --recipe asks for one: {', '.join(others)}."] if others else []


def _periods(a: str, b: str, select: Select, filters: Filters) -> tuple[Side, Side, list[str]]:
    """Two ranges of days, each under the recipe that was in use.

    Of recipes that nights over a range have scored equally far, the first range takes that which ran first and the
    second range that which came last, so that a backfill does not hide that the judge has changed between them.
    """
    if filters.first or filters.last:
        raise UsageError("--from and --to narrow down other sides; here the sides are the days. Leave them out.")
    found = []
    for later, value in enumerate((a, b)):
        first, last = _days(value)
        rows = wanted(select("recipes", app=filters.app, first=first, last=last), filters)
        rows = [r for r in rows if r["n"]]
        if not rows:
            raise UsageError(
                f"dates:{value}: nothing of these days is scored. Run leadline nightly --from {first} --to {last}, or "
                "name others."
            )
        if len(names := sorted({r["recipe_name"] for r in rows})) > 1 and not filters.recipe:
            main = _latest(rows, lambda r: int(r["n"]))["recipe_name"]
            rows = [r for r in rows if r["recipe_name"] == main]
        else:
            names = []
        rows = [r for r in rows if r["in_nights"]] or rows
        most = max(r["n"] for r in rows)
        whole = [r for r in rows if r["n"] == most]  # ordered by when they first ran
        found.append((Side("dates", f"{first}..{last}", whole[-1 if later else 0], first=first, last=last), names))
    (x, names), (y, _) = found
    notes = [f"Several recipes have scored these days ({', '.join(names)}); --recipe asks for one."] if names else []
    notes += [
        f"{side.value}: {r['n']:,} of {r['n_any']:,} scored traces are scored under recipe {r['recipe_name']} "
        f"{r['recipe']}; the others are left out."
        for side in (x, y)
        if (r := side.recipe)["n"] < r["n_any"]
    ]
    if x.recipe["recipe_name"] != y.recipe["recipe_name"]:
        notes.append("The two ranges were scored under recipes of different names.")
    return x, y, notes


def _days(value: str) -> tuple[date, date]:
    match = _DATES.fullmatch(value)
    try:
        first, last = (date.fromisoformat(day) for day in ((match[1], match[2] or match[1]) if match else ("", "")))
    except ValueError:
        raise UsageError(
            f"dates:{value}: is no range of days. Write dates:2026-11-01..2026-11-07, or one day."
        ) from None
    if first > last:
        raise UsageError(f"dates:{value}: {first} is after {last}. Swap them.")
    return first, last
