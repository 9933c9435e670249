"""`leadline agreement`: agreement of two judges, graders or people on the same claims and answers.

Method: docs/methods.md#judging-the-judges.

It only reads the published warehouse. Of reviewed claims, only random samples count: claims that were picked for review
because of their labels would bias the numbers. Left out: resolving selectors (`raters.py`), and showing the results
(`tasks/publish/documents/agreement.py`).
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tasks.analysis.agreement.raters import Candidates, Rater, Ratings, candidates, join_ratings, no_overlap, rater
from tasks.analysis.agreement.results import (
    OUTCOMES,
    AgreementResult,
    ClaimAgreement,
    Claims,
    Grade,
    GradeAgreement,
    Grades,
    LabelAgreement,
)
from tasks.analysis.compare.arms import closest
from tasks.analysis.compare.results import LABELS
from tasks.analysis.frames import groups, tally, total
from tasks.core.errors import DataError
from tasks.core.grades import GRADES, RANGES
from tasks.core.labeling import UNDECIDED
from tasks.run.selectors import Filters
from tasks.stats import agreement as core
from tasks.stats.agreement import Counts
from tasks.store.warehouse import Reader

WITHOUT_VALUE = ("na", "unparsable", "failed", "unjudged", "tied", *UNDECIDED)
K = len(LABELS)


def measure(
    reader: Reader, selectors: tuple[str, str], filters: Filters, suite: str | None, most: int
) -> AgreementResult:
    """Measure how far two raters agree.

    Args:
        selectors: Selectors of the raters, such as `judge:nli` and `people`.
        suite: The suite whose cases are compared; None for the traces of nights.
        most: Largest number of disagreements to list.

    Raises:
        UsageError: A rater or filter is unknown or ambiguous.
        DataError: The raters have no claims or answers in common.
    """
    of = candidates(reader, filters, suite)
    a, b = (rater(selector, of) for selector in selectors)
    notes: list[str] = []
    claims = _claims(reader, a, b, filters, most, notes) if a.recipes and b.recipes else None
    grades = _grades(reader, a, b, of, filters, most) if a.may_grade and b.may_grade else None
    if claims is None and grades is None:
        raise DataError(no_overlap(selectors, a, b, of))
    for noun, found in (("claim", claims), ("grade", grades)):
        if found is not None and found.picked:
            n = f"{found.picked:,} {noun}{'' if found.picked == 1 else 's'}"
            notes.append(f"Left out, because people chose them for review by their labels: {n}.")
    return AgreementResult(a.name, b.name, filters, claims, grades, tuple(notes))


def _claims(reader: Reader, a: Rater, b: Rater, filters: Filters, most: int, notes: list[str]) -> Claims | None:
    """Agreement on labels, under the recipes with most common claims; None without common claims."""
    best: tuple[int, tuple[str, str], dict[str, Ratings], pl.DataFrame] | None = None
    recipe_pairs, recipe_notes = _recipe_pairs(reader, a, b, filters)
    for recipes in recipe_pairs:
        ratings = {key: of.labels(recipe, filters) for key, of, recipe in zip("ab", (a, b), recipes, strict=True)}
        rows = join_ratings(reader, "labels", ratings)
        n = total(rows.filter(_both_in(LABELS)))
        if n and (best is None or n > best[0]):
            best = n, recipes, ratings, rows
    if best is None:
        return None
    notes += recipe_notes
    _, recipes, ratings, rows = best
    drawn = rows.filter("drawn")
    counts = tally(drawn, OUTCOMES)
    labeled = counts[:, :K, :K]
    return Claims(
        recipes=recipes,
        outcomes=OUTCOMES,
        matrix=_matrix(counts),
        whole=_claim_agreement("", labeled),
        by_label=tuple(found for i in range(K) if (found := _label_agreement(labeled, i))),
        by_app=tuple(_claim_agreement(app, tally(part, OUTCOMES)[:, :K, :K]) for app, (part,) in groups("app", drawn)),
        picked=total(rows.filter(~pl.col("drawn"))),
        disagreements=tuple(join_ratings(reader, "label_disagreements", ratings, most=most).to_dicts()),
    )


def _recipe_pairs(reader: Reader, a: Rater, b: Rater, filters: Filters) -> tuple[list[tuple[str, str]], list[str]]:
    """Recipes under which two raters may have labeled the same claims, and notes on the choice."""
    if a.people or b.people:
        return [(r["recipe"], r["recipe"]) for r in (b if a.people else a).recipes], []
    pairs = [(x, y) for x in a.recipes for y in b.recipes if x["extractor_version"] == y["extractor_version"]]
    if len(pairs) < 2:
        return [(x["recipe"], y["recipe"]) for x, y in pairs], []
    x, y, notes = closest(reader, "judge", [x for x, _ in pairs], [y for _, y in pairs], filters)
    return [(x.recipe["recipe"], y.recipe["recipe"])], notes


def _claim_agreement(name: str, labeled: Counts) -> ClaimAgreement:
    return ClaimAgreement(name, core.agreement(labeled), core.agreement(core.one_against_rest(labeled, 0)))


def _label_agreement(labeled: Counts, at: int) -> LabelAgreement | None:
    """Agreement on one label against the rest; None if nobody gave it."""
    total = labeled.sum(axis=0)
    n_a, n_b = int(total[at].sum()), int(total[:, at].sum())
    if not n_a + n_b:
        return None
    rest = core.one_against_rest(labeled, at)
    kappa, recall = core.interval(rest, core.kappa), core.interval(rest, core.recall, 0.0)
    return LabelAgreement(LABELS[at], n_a, n_b, int(total[at, at]), kappa, recall)


def _grades(reader: Reader, a: Rater, b: Rater, of: Candidates, filters: Filters, most: int) -> Grades | None:
    """Agreement on grades; None without answers that both graded."""
    recipes = [r["recipe"] for r in of.recipes] if filters.recipe else None
    suite = of.suite["version"] if of.suite else None
    ratings = {key: rater.grades(recipes, suite, filters) for key, rater in (("a", a), ("b", b))}
    rows = join_ratings(reader, "grades", ratings)
    if rows.is_empty():
        return None
    drawn = rows.filter("drawn")
    return Grades(
        suite=of.suite["name"] if of.suite else None,
        by_grade=tuple(_grade(part, grade) for grade in GRADES if not (part := drawn.filter(grade=grade)).is_empty()),
        picked=total(rows.filter(~pl.col("drawn"))),
        disagreements=tuple(join_ratings(reader, "grade_disagreements", ratings, most=most).to_dicts()),
    )


def _grade(rows: pl.DataFrame, grade: str) -> Grade:
    without = [o for o in WITHOUT_VALUE if o in {*rows["outcome_a"], *rows["outcome_b"]}]
    outcomes = (*_whole_grades(grade), *without)
    return Grade(
        grade=grade,
        outcomes=outcomes,
        matrix=_matrix(_tally_grades(rows, outcomes)),
        whole=_grade_agreement("", rows, grade),
        by_app=tuple(_grade_agreement(app, part, grade) for app, (part,) in groups("app", rows)),
    )


def _grade_agreement(name: str, rows: pl.DataFrame, grade: str) -> GradeAgreement:
    classes = _whole_grades(grade)
    scored = rows.filter(_both_in(("scored",)))
    graded = _tally_grades(scored, classes)
    applies = tally(rows.filter(_both_in(("scored", "na"))), ("scored", "na"))
    return GradeAgreement(
        name=name,
        graded=core.agreement(graded),
        weighted=core.interval(graded, core.weighted_kappa) if len(classes) > 2 else None,
        rank=core.interval(_by_value(scored), core.rank_correlation),
        applies=core.interval(applies, core.kappa),
        n_applies=int(applies.sum()),
    )


def _whole_grades(grade: str) -> tuple[str, ...]:
    least, most = RANGES[grade]
    return tuple(map(str, range(least, most + 1)))


def _tally_grades(rows: pl.DataFrame, outcomes: Sequence[str]) -> Counts:
    """Contingency tables by question. Values are rounded to the nearest whole grade."""

    def nearest(key: str) -> pl.Expr:
        value = (pl.col(f"value_{key}") + 0.5).floor()  # round halves up: 3.5 and 4.5 stay one grade apart
        outcome = pl.col(f"outcome_{key}")
        whole = value.cast(pl.Int64).cast(pl.String)
        return pl.when(outcome == "scored").then(whole).otherwise(outcome).alias(f"outcome_{key}")

    return tally(rows.with_columns(nearest("a"), nearest("b")), outcomes)


def _by_value(rows: pl.DataFrame) -> Counts:
    """(m, k, l) tables of unrounded values, which may be averages of several samples."""
    (values_a, a), (values_b, b) = (
        np.unique(rows[column].cast(pl.Float64).to_numpy(), return_inverse=True) for column in ("value_a", "value_b")
    )
    shape = max(1, len(values_a)), max(1, len(values_b))
    return core.tally(rows["question"].to_numpy(), a, b, shape, rows["n"].to_numpy())


def _both_in(outcomes: Sequence[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col("outcome_a", "outcome_b").is_in(outcomes))


def _matrix(counts: Counts) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, counts.sum(axis=0).tolist()))
