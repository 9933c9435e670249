"""Raters: resolve selectors to judges, graders and people, and to SELECTs of their labels and grades.

A rater is `judge:NAME` (labels of claims), `grader:NAME` (grades of answers), a bare name (either or both), `people`
(their final labels and grades) or `reviewer:NAME`. Left out: measuring agreement (`agreement.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tasks.analysis.compare.drift import backfill
from tasks.analysis.compare.results import LABELS
from tasks.analysis.frames import select
from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError
from tasks.run.selectors import Filters, Row, ambiguous, matches, matching, parse, recipes_of, scored_version
from tasks.store.lake import frame
from tasks.store.query import over, sql
from tasks.store.warehouse import Reader

PEOPLE = "people"


@dataclass(frozen=True)
class Ratings:
    """A SELECT of one rater's labels or grades, with its parameters."""

    select: str
    params: Mapping[str, object]

    def renamed(self, suffix: str) -> "Ratings":
        """Append `_<suffix>` to the names of parameters, so that several SELECTs fit into one query."""
        text = re.sub(rf"\$({'|'.join(self.params)})\b", rf"$\g<1>_{suffix}", self.select)
        return Ratings(text, {f"{k}_{suffix}": v for k, v in self.params.items()})


@dataclass(frozen=True, slots=True)
class Rater:
    """A judge, a grader, people, or one reviewer.

    Attributes:
        name: Display name, with the version.
        recipes: Rows of `recipes.sql` with labels of this judge. For people, one recipe per extractor.
        grader: Version of the grader; None for people and for judges without grades.
        people: Whether the rater is people or one reviewer.
        reviewer: Name of the reviewer; None for all people.
    """

    name: str
    recipes: tuple[Row, ...] = ()
    grader: str | None = None
    people: bool = False
    reviewer: str | None = None

    @property
    def may_grade(self) -> bool:
        """Whether the rater may have given grades."""
        return self.people or self.grader is not None

    def labels(self, recipe: str, filters: Filters) -> Ratings:
        """SELECT of the labels of a recipe's claims."""
        params = {"recipe": recipe, **filters.scope}
        if self.people:
            return Ratings(sql("analysis/agreement/people_labels"), {"reviewer": self.reviewer, **params})
        return Ratings(sql("analysis/agreement/judge_labels"), params)

    def grades(self, recipes: Sequence[str] | None, suite: str | None, filters: Filters) -> Ratings:
        """SELECT of grades of traces or of a suite's cases.

        Args:
            recipes: Only traces that were scored under one of these recipes; None for all.
            suite: Version of the suite; None for traces.
        """
        if suite is not None:
            return Ratings(sql("analysis/agreement/suite_grades"), {"grader": self.grader, "suite": suite})
        params = {"recipes": recipes, **filters.scope}
        if self.people:
            return Ratings(sql("analysis/agreement/people_grades"), {"reviewer": self.reviewer, **params})
        return Ratings(sql("analysis/agreement/night_grades"), {"grader": self.grader, **params})


def join_ratings(reader: Reader, name: str, ratings: Mapping[str, Ratings], **params: object) -> pl.DataFrame:
    """Run `sql/analysis/agreement/<name>.sql` over ratings; each is available as relation `ratings_<key>`."""
    renamed = {f"ratings_{key}": given.renamed(key) for key, given in ratings.items()}
    text = over(sql(f"analysis/agreement/{name}"), {relation: given.select for relation, given in renamed.items()})
    given = {k: v for of in renamed.values() for k, v in of.params.items()}
    return frame(reader.table(text, {**given, "labels": list(LABELS), **params}))


@dataclass(frozen=True, slots=True)
class Candidates:
    """All possible raters, within the days and app of the filters.

    Attributes:
        recipes: Rows of `recipes.sql`, filtered by --recipe.
        graders: Rows of `graders.sql`, or of `suite_graders.sql` with --suite.
        reviewers: Names of reviewers.
        suites: All rows of `suites.sql`.
        suite: The suite that --suite names; None without --suite.
    """

    recipes: tuple[Row, ...]
    graders: tuple[Row, ...]
    reviewers: tuple[str, ...]
    suites: tuple[Row, ...] = ()
    suite: Row | None = None


def candidates(reader: Reader, filters: Filters, suite: str | None) -> Candidates:
    """Find all possible raters.

    Raises:
        UsageError: --recipe or --suite matches nothing, or --suite matches several.
    """
    suites = tuple(select(reader, "agreement/suites").to_dicts())
    if suite is not None:
        of = _suite(suites, suite)
        graders = select(reader, "agreement/suite_graders", suite=of["version"]).to_dicts()
        return Candidates((), tuple(graders), (), suites, of)
    recipes: list[Row] = list(select(reader, "compare/recipes", **filters.scope).to_dicts())
    recipes = recipes_of(recipes, filters) if recipes or filters.recipe else []
    which = [r["recipe"] for r in recipes] if filters.recipe else None
    graders = select(reader, "agreement/graders", recipes=which, **filters.scope).to_dicts()
    reviewers = reader.rows("SELECT DISTINCT reviewer FROM reviews WHERE reviewer IS NOT NULL ORDER BY reviewer", {})
    return Candidates(tuple(recipes), tuple(graders), tuple(r["reviewer"] for r in reviewers), suites)


def _suite(rows: Sequence[Row], word: str) -> Row:
    """Resolve --suite: a name, a path that ends in the name, the end of a name, or the beginning of a version."""
    if not rows:
        raise UsageError(f"--suite {word}: no grader was run over a suite yet. Run leadline metaeval with two of them.")
    path = f"/{word.rstrip('/')}"
    found = [r for r in rows if matches(word, r["name"], r["version"]) or _ends_alike(path, f"/{r['name']}")]
    if not found:
        names = sorted({r["name"] for r in rows})
        raise UsageError(f"--suite {word}: no grader was run over it. {did_you_mean(word, names, 'suites')}")
    if len(found) > 1:
        versions = [f"{r['version']} ({r['n']:,} cases, {len(r['graders'])} graders)" for r in found]
        raise ambiguous(f"--suite {word}", versions)
    return found[0]


def _ends_alike(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one)


def rater(selector: str, of: Candidates) -> Rater:
    """Resolve a selector to a rater.

    Raises:
        UsageError: The rater is unknown, or has several versions.
    """
    kind, name = parse(selector, ("judge", "grader", "reviewer"))  # a judge may be named "grader"
    if of.suite is not None and (selector == PEOPLE or kind == "reviewer"):
        raise UsageError(
            f"{selector}: people give no grades to a suite's cases, its conditions are theirs. leadline metaeval "
            "compares a grader with them; here give two graders, or leave out --suite."
        )
    if selector == PEOPLE:
        return Rater(PEOPLE, _one_per_extractor(of.recipes), people=True)
    if kind == "reviewer":
        if name not in of.reviewers:
            hint = did_you_mean(name, list(of.reviewers), "reviewers")
            raise UsageError(f"{selector}: no labels of this reviewer were imported. {hint}")
        return Rater(selector, _one_per_extractor(of.recipes), people=True, reviewer=name)
    judges = matching(name, of.recipes, "judge_name", "judge_version") if kind != "grader" else []
    graders = matching(name, of.graders, "name", "version") if kind != "judge" else []
    if not judges and not graders:
        raise _unknown(selector, kind, name, of)
    labeled, graded = ([r for r in rows if r["n"]] for rows in (judges, graders))
    if len({r["judge_version"] for r in labeled}) > 1:
        raise ambiguous(selector, [scored_version(r, "judge_version") for r in labeled])
    if len(graded) > 1:
        raise ambiguous(selector, [f"{g['version']} ({g['n']:,} answers graded)" for g in graded])
    versions = sorted({*(r["judge_version"] for r in labeled), *(g["version"] for g in graded)})
    named = judges[0]["judge_name"] if judges else graders[0]["name"]
    return Rater(" ".join([named, *versions]), tuple(labeled), graded[0]["version"] if graded else None)


def _unknown(selector: str, kind: str, name: str, of: Candidates) -> UsageError:
    if of.suite is None and (run := [s["name"] for s in of.suites if name in (*s["grader_names"], *s["graders"])]):
        return UsageError(f"{selector}: has graded no trace, only cases of a suite. Ask with --suite {run[0]}.")
    names = {r["judge_name"] for r in of.recipes} | {g["name"] for g in of.graders}
    return UsageError(
        f"{selector}: no such {kind or 'judge or grader'} has labels or grades here. "
        f"{did_you_mean(name, sorted(names), 'names')} Else give `people` or `reviewer:NAME`."
    )


def _one_per_extractor(recipes: Sequence[Row]) -> tuple[Row, ...]:
    """One recipe per extractor, which determines the claims: the recipe with most scored traces."""
    by: dict[str, Row] = {}
    for r in recipes:
        if r["n"] and r["n"] >= by.get(r["extractor_version"], {"n": 0})["n"]:
            by[r["extractor_version"]] = r
    return tuple(by.values())


def no_overlap(selectors: tuple[str, str], a: Rater, b: Rater, of: Candidates) -> str:
    """Explain why two raters have no labeled claim and no graded answer in common, with a remedy."""
    silent = " and ".join(s for s, r in zip(selectors, (a, b), strict=True) if not r.recipes and not r.may_grade)
    reason = f"{' and '.join(selectors)} have no labeled claim and no graded answer in common."
    extractors = [{r["extractor_version"] for r in rater.recipes} for rater in (a, b)]
    if of.suite is not None:
        reason = f"{silent or reason}: there are no grades for suite {of.suite['name']}."
        remedy = "Run leadline metaeval --judge FILE of each over it."
    elif silent:
        reason = f"{silent}: no label or grade in these days and this app."
        remedy = "Judge them first with leadline nightly or backfill, or widen --from, --to, --app and --recipe."
    elif a.people or b.people:
        remedy = (
            "Import people's labels or grades of what the other rater has judged, with leadline review import "
            "(docs/reviews.md)."
        )
    elif suite := next((s["name"] for s in of.suites if {a.grader, b.grader} <= {*s["graders"]}), None):
        remedy = f"Both were run over a suite: add --suite {suite}."
    elif all(extractors) and not extractors[0] & extractors[1]:
        reason += " Their recipes cut answers into different claims."
        remedy = "Judge the same days by both under one recipe, with leadline backfill --judge."
    elif all(extractors):
        days = a.recipes[-1]
        command = backfill(b.recipes[-1], days["first_date"], days["last_date"])
        remedy = f"Judge the days of one by the other: {command}."
    else:
        remedy = (
            "Let both grade the same days (key grades of a recipe), or run both over a suite with leadline metaeval."
        )
    return f"{reason} {remedy}"
