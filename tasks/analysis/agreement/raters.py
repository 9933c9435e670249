"""Who agrees with whom: words of the command line into judges, graders and people of the warehouse.

A side is `judge:NAME` (labels of claims), `grader:NAME` (grades of answers), a bare name (whichever of the two it has
given), `people` (what counts of their labels and grades) or `reviewer:NAME`. Left out: what they said (`said.py`) and
how far they agree (`agreement.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.analysis.compare.differences import ask
from tasks.analysis.compare.drift import backfill
from tasks.analysis.compare.selectors import Filters, Row, matches, told, wanted
from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError
from tasks.store.query import sql
from tasks.store.warehouse import Reader

PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class Rater:
    """One side.

    Attributes:
        name: What people call it, with its version.
        recipes: Rows of `sql/analysis/compare/recipes.sql` under which it has labelled claims; of people all that there are.
        grader: Version under which it has given grades; None where it has given none, and of people.
        people: Whether it is people, or one of them.
        reviewer: That one.
    """

    name: str
    recipes: tuple[Row, ...] = ()
    grader: str | None = None
    people: bool = False
    reviewer: str | None = None

    @property
    def grades(self) -> bool:
        """Whether it may have given grades."""
        return self.people or self.grader is not None


@dataclass(frozen=True, slots=True)
class Known:
    """What the warehouse has of judges, graders and people, in the days and app asked for.

    Attributes:
        recipes: Rows of `sql/analysis/compare/recipes.sql` that --recipe leaves.
        graders: Rows of `sql/analysis/agreement/graders.sql`, or of `suite_graders.sql` where a suite is asked for.
        reviewers: Names.
        suites: Rows of `sql/analysis/agreement/suites.sql`, all of them.
        suite: The one that is asked for.
    """

    recipes: tuple[Row, ...]
    graders: tuple[Row, ...]
    reviewers: tuple[str, ...]
    suites: tuple[Row, ...] = ()
    suite: Row | None = None


def known(reader: Reader, filters: Filters, suite: str | None) -> Known:
    """Everybody who could be a side.

    Raises:
        UsageError: --recipe or --suite names none, or several.
    """
    suites = tuple(reader.rows(sql("analysis/agreement/suites"), {}))
    if suite is not None:
        of = _suite(suites, suite)
        return Known(
            (), tuple(reader.rows(sql("analysis/agreement/suite_graders"), {"suite": of["version"]})), (), suites, of
        )
    recipes = ask(reader, "recipes", **filters.scope).to_pylist()
    recipes = wanted(recipes, filters) if recipes or filters.recipe else []
    which = [r["recipe"] for r in recipes] if filters.recipe else None
    graders = reader.rows(sql("analysis/agreement/graders"), {"recipes": which, **filters.scope})
    people = reader.rows("SELECT DISTINCT reviewer FROM reviews WHERE reviewer IS NOT NULL ORDER BY reviewer", {})
    return Known(tuple(recipes), tuple(graders), tuple(r["reviewer"] for r in people), suites)


def _suite(rows: Sequence[Row], word: str) -> Row:
    """The suite that --suite names: by its name, a path that ends in it, its end, or its version's beginning."""
    if not rows:
        raise UsageError(f"--suite {word}: no grader was run over a suite yet. Run leadline metaeval with two of them.")
    path = f"/{word.rstrip('/')}"
    found = [r for r in rows if matches(word, r["name"], r["version"]) or _ends_alike(path, f"/{r['name']}")]
    if not found:
        names = sorted({r["name"] for r in rows})
        raise UsageError(f"--suite {word}: no grader was run over it. {did_you_mean(word, names, 'suites')}")
    if len(found) > 1:
        versions = "; ".join(f"{r['version']} ({r['n']:,} cases, {len(r['graders'])} graders)" for r in found)
        raise UsageError(f"--suite {word} has {len(found)} versions: {versions}. Give one by its hash.")
    return found[0]


def _ends_alike(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one)


def rater(word: str, of: Known) -> Rater:
    """The side that a word means.

    Raises:
        UsageError: It is unknown, or has several versions.
    """
    kind, colon, rest = word.partition(":")
    kind = kind if colon else ""  # a judge may be called "grader"
    if of.suite is not None and (word == PEOPLE or kind == "reviewer"):
        raise UsageError(
            f"{word}: people give no grades to a suite's cases, its conditions are theirs. leadline metaeval holds a "
            "grader against them; here give two graders, or leave out --suite."
        )
    if word == PEOPLE:
        return Rater(PEOPLE, _one_each(of.recipes), people=True)
    if kind == "reviewer":
        if rest not in of.reviewers:
            hint = did_you_mean(rest, list(of.reviewers), "reviewers")
            raise UsageError(f"{word}: nothing of such a reviewer was imported. {hint}")
        return Rater(word, _one_each(of.recipes), people=True, reviewer=rest)
    named = rest if kind in ("judge", "grader") else word
    judges = [r for r in of.recipes if matches(named, r["judge_name"], r["judge_version"])] if kind != "grader" else []
    graders = [g for g in of.graders if matches(named, g["name"], g["version"])] if kind != "judge" else []
    if not judges and not graders:
        names = {r["judge_name"] for r in of.recipes} | {g["name"] for g in of.graders}
        what = kind if named != word else "judge or grader"
        if of.suite is None and (run := [s["name"] for s in of.suites if named in (*s["grader_names"], *s["graders"])]):
            raise UsageError(f"{word}: has graded no trace, only cases of a suite. Ask with --suite {run[0]}.")
        raise UsageError(
            f"{word}: no such {what} has labels or grades here. "
            f"{did_you_mean(named, sorted(names), 'names')} Else give `people` or `reviewer:NAME`."
        )
    labelled = [r for r in judges if r["n"]]
    if len({r["judge_version"] for r in labelled}) > 1:
        raise _several(word, [told(r, "judge_version") for r in labelled])
    graded = [g for g in graders if g["n"]]
    if len(graded) > 1:
        raise _several(word, [f"{g['version']} ({g['n']:,} answers graded)" for g in graded])
    ids = sorted({*(r["judge_version"] for r in labelled), *(g["version"] for g in graded)})
    name = next((r["judge_name"] for r in judges), None) or graders[0]["name"]
    return Rater(" ".join([name, *ids]), tuple(labelled), graded[0]["version"] if graded else None)


def _several(word: str, versions: Sequence[str]) -> UsageError:
    return UsageError(f"{word} has {len(versions)} versions: {'; '.join(versions)}. Give one by its hash.")


def _one_each(recipes: Sequence[Row]) -> tuple[Row, ...]:
    """Of the recipes that cut answers into the same claims the one that has scored most."""
    by: dict[str, Row] = {}
    for r in recipes:
        if r["n"] and r["n"] >= by.get(r["extractor_version"], {"n": 0})["n"]:
            by[r["extractor_version"]] = r
    return tuple(by.values())


def nothing_in_common(words: tuple[str, str], a: Rater, b: Rater, of: Known) -> str:
    """Why two sides have neither labelled a claim both nor graded an answer both, and what to do about it."""
    one, other = words
    silent = " and ".join(w for w, r in ((one, a), (other, b)) if not r.recipes and not r.grades)
    start = f"{one} and {other} have neither labelled a claim both nor graded an answer both."
    extractors = [{r["extractor_version"] for r in side.recipes} for side in (a, b)]
    if of.suite is not None:
        found = f"{silent or start}: nothing of suite {of.suite['name']} is there."
        remedy = "Run leadline metaeval --judge FILE of each over it."
    elif silent:
        found = f"{silent}: no label or grade in the days and app asked for."
        remedy = "Judge them first with leadline nightly or backfill, or widen --from, --to, --app and --recipe."
    elif a.people or b.people:
        found = start
        remedy = (
            "Import people's labels or grades of what the other side has judged, with leadline review import "
            "(docs/reviews.md)."
        )
    elif a.grader and b.grader and (suite := _shared_suite(of.suites, a.grader, b.grader)):
        found, remedy = start, f"Both were run over a suite: ask with --suite {suite}."
    elif all(extractors) and not extractors[0] & extractors[1]:
        found = f"{start} Their recipes cut answers into different claims."
        remedy = "Judge the same days by both under one recipe, with leadline backfill --judge."
    elif all(extractors):
        days = a.recipes[-1]
        found = start
        remedy = (
            f"Judge the days of one by the other: {backfill(b.recipes[-1], days['first_date'], days['last_date'])}."
        )
    else:
        found = start
        remedy = (
            "Let both grade the same days (key grades of a recipe), or run both over a suite with leadline metaeval."
        )
    return f"{found} {remedy}"


def _shared_suite(suites: Sequence[Row], one: str, other: str) -> str | None:
    return next((s["name"] for s in suites if {one, other} <= {*s["graders"]}), None)
