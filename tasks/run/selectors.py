"""Selectors: arguments of commands that name judges, recipes, graders, people or days.

A selector is `kind:name`, or only a name. A name matches a row by its name, or by the beginning of its version.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError

Row: TypeAlias = Mapping[str, Any]
LEAST_PREFIX = 4  # characters of a version
DATES = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.\.(\d{4}-\d{2}-\d{2}))?")


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters on the rows of the warehouse that a command reads; None for no filter."""

    recipe: str | None = None
    app: str | None = None
    first: date | None = None
    last: date | None = None

    @property
    def scope(self) -> dict[str, object]:
        """Parameters of the SQL."""
        return {"app": self.app, "first": self.first, "last": self.last}


def parse(selector: str, kinds: Collection[str]) -> tuple[str, str]:
    """Split a selector into kind and name. The kind is empty if the selector starts with none of `kinds`."""
    kind, colon, name = selector.partition(":")
    return (kind, name) if colon and kind in kinds else ("", selector)


def matches(word: str, name: str, version: str) -> bool:
    """Whether a word is this name, or the beginning of this version."""
    return word == name or (len(word) >= LEAST_PREFIX and version.startswith(word))


def matching(word: str, rows: Iterable[Row], name: str, version: str) -> list[Row]:
    """Return the rows that a word matches, by the columns `name` and `version`."""
    return [row for row in rows if matches(word, row[name], row[version])]


def recipes_of(recipes: Sequence[Row], filters: Filters) -> list[Row]:
    """Return the recipes that --recipe names, or all. `recipes` are rows of `sql/analysis/compare/recipes.sql`.

    Raises:
        UsageError: There are no recipes, or none matches.
    """
    if not recipes:
        raise UsageError("the warehouse has no scores yet. Run `leadline nightly` first.")
    if filters.recipe is None:
        return list(recipes)
    if found := matching(filters.recipe, recipes, "recipe_name", "recipe"):
        return found
    names = sorted({r["recipe_name"] for r in recipes})
    raise UsageError(f"--recipe {filters.recipe}: no such recipe. {did_you_mean(filters.recipe, names, 'recipes')}")


def ambiguous(selector: str, versions: Sequence[str]) -> UsageError:
    """Return an error for a name with several versions, which are described in `versions`."""
    return UsageError(f"{selector} has {len(versions)} versions: {'; '.join(versions)}. Give one by its hash.")


def scored_version(row: Row, version: str) -> str:
    """Describe one version for `ambiguous`, given a row of `recipes.sql` and the column of the version."""
    return (
        f"{row[version]} ({row['first_date']} to {row['last_date']}, {row['n']:,} traces, recipe "
        f"{row['recipe_name']!r}, judge {row['judge_name']!r})"
    )


def date_range(name: str) -> tuple[date, date]:
    """Parse `2026-11-01..2026-11-07` or one day; returns the first and last day.

    Raises:
        UsageError: The text is not a range of days, or ends before it starts.
    """
    match = DATES.fullmatch(name)
    try:
        first, last = (date.fromisoformat(day) for day in ((match[1], match[2] or match[1]) if match else ("", "")))
    except ValueError:
        raise UsageError(
            f"dates:{name}: is not a range of days. Write dates:2026-11-01..2026-11-07, or one day."
        ) from None
    if first > last:
        raise UsageError(f"dates:{name}: {first} is after {last}. Swap them.")
    return first, last
