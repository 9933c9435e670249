"""`leadline agreement`: how far two judges, graders or people agree on the same claims and answers (METHODS 10).

It reads the published warehouse, and writes nothing. Of what people were shown, only what was drawn at random enters
the numbers: what was picked for its labels is no fair sample of anything. Left out: which sides a word means
(`raters.py`), what they said (`said.py`), and how it all is shown (`flows/analysis/agreement.py`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tasks.analysis.agreement import labels as said
from tasks.analysis.agreement.findings import SAID, Agreed, Claims, Grade, Grades, OfClaims, OfGrade, OneLabel
from tasks.analysis.agreement.raters import Known, Rater, known, nothing_in_common, rater
from tasks.analysis.compare.differences import ask, names_of, only
from tasks.analysis.compare.findings import JUDGED
from tasks.analysis.compare.selectors import Filters, Row, measured
from tasks.core.errors import DataError
from tasks.core.grades import GRADES, RANGES
from tasks.stats import agreement as core
from tasks.stats.agreement import Counts
from tasks.store.warehouse import Reader

APART = ("na", "unparsable", "failed", "unjudged", "tied", "cant_tell")  # what is no grade


def agree(reader: Reader, words: tuple[str, str], filters: Filters, suite: str | None, most: int) -> Agreed:
    """How far two sides agree.

    Args:
        words: What the user calls them, such as `judge:nli` and `people`.
        suite: On the cases of this suite; None for the traces of nights.
        most: How many of the worst disagreements are named.

    Raises:
        UsageError: A side or filter is unknown, or means several things.
        DataError: They have nothing in common.
    """
    of = known(reader, filters, suite)
    a, b = (rater(word, of) for word in words)
    notes: list[str] = []
    claims = _claims(reader, a, b, filters, most, notes) if a.recipes and b.recipes else None
    grades = _grades(reader, a, b, of, filters, most) if a.grades and b.grades else None
    if claims is None and grades is None:
        raise DataError(nothing_in_common(words, a, b, of))
    for what, found in (("claims", claims), ("grades", grades)):
        if found is not None and found.picked:
            n = f"{found.picked:,} {what[:-1] if found.picked == 1 else what}"
            notes.append(f"In no number, since picked for review because of what was said of them: {n}.")
    return Agreed(a.name, b.name, filters, claims, grades, tuple(notes))


def _claims(reader: Reader, a: Rater, b: Rater, filters: Filters, most: int, notes: list[str]) -> Claims | None:
    """Labels of the same claims; None where there are none that both have labelled."""
    best: tuple[int, tuple[str, str], dict[str, said.Said], pa.Table] | None = None
    told: list[str] = []
    for x, y in _recipes(reader, a, b, filters, told):
        sides = {"a": said.labels(a, x["recipe"], filters), "b": said.labels(b, y["recipe"], filters)}
        rows = said.ask(reader, "labels", sides)
        both = rows.filter(pc.and_(*(pc.is_in(rows[c], pa.array(JUDGED)) for c in ("outcome_a", "outcome_b"))))
        n = int(pc.sum(both["n"]).as_py() or 0)
        if n and (best is None or n > best[0]):
            best = n, (x["recipe"], y["recipe"]), sides, rows
    if best is None:
        return None
    _, recipes, sides, rows = best
    notes += told
    drawn = rows.filter(rows["drawn"])
    counts = _outcomes(drawn)
    labelled = _labels(drawn)
    total = labelled.sum(axis=0)
    return Claims(
        recipes=recipes,
        outcomes=SAID,
        matrix=_plain(counts),
        whole=_of_claims("", labelled),
        each=tuple(
            OneLabel(
                label=label,
                n_a=int(total[i].sum()),
                n_b=int(total[:, i].sum()),
                both=int(total[i, i]),
                kappa=core.interval(core.one_against_rest(labelled, i), core.kappa),
                recall=core.interval(core.one_against_rest(labelled, i), core.recall, 0.0),
            )
            for i, label in enumerate(JUDGED)
            if total[i].sum() + total[:, i].sum()
        ),
        by_app=tuple(_of_claims(app, _labels(only(drawn, app=app))) for app in _apps(drawn)),
        picked=int(pc.sum(rows.filter(pc.invert(rows["drawn"]))["n"]).as_py() or 0),
        worst=tuple(said.ask(reader, "label_disagreements", sides, most=most).to_pylist()),
    )


def _recipes(reader: Reader, a: Rater, b: Rater, filters: Filters, notes: list[str]) -> list[tuple[Row, Row]]:
    """Pairs of recipes under which two sides may have labelled the same claims."""

    def select(name: str, **params: object) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = ask(reader, name, **params).to_pylist()
        return rows

    if a.people:
        return [(r, r) for r in b.recipes]
    if b.people:
        return [(r, r) for r in a.recipes]
    pairs = [(x, y) for x in a.recipes for y in b.recipes if x["extractor_version"] == y["extractor_version"]]
    if len(pairs) < 2:
        return pairs
    x, y, told = measured(select, "judge", [x for x, _ in pairs], [y for _, y in pairs], filters)
    notes += told
    return [(x.recipe, y.recipe)]


def _of_claims(name: str, labelled: Counts) -> OfClaims:
    return OfClaims(name, core.agreement(labelled), core.agreement(core.one_against_rest(labelled, 0)))


def _grades(reader: Reader, a: Rater, b: Rater, of: Known, filters: Filters, most: int) -> Grades | None:
    """Grades of the same answers; None where both have graded none."""
    recipes = [r["recipe"] for r in of.recipes] if filters.recipe else None
    suite = of.suite["version"] if of.suite else None
    sides = {name: said.grades(side, recipes, suite, filters) for name, side in (("a", a), ("b", b))}
    rows = said.ask(reader, "grades", sides)
    if not rows.num_rows:
        return None
    drawn = rows.filter(rows["drawn"])
    return Grades(
        suite=of.suite["name"] if of.suite else None,
        each=tuple(_grade(only(drawn, grade=g), g) for g in GRADES if g in names_of(drawn, "grade")),
        picked=int(pc.sum(rows.filter(pc.invert(rows["drawn"]))["n"]).as_py() or 0),
        worst=tuple(said.ask(reader, "grade_disagreements", sides, most=most).to_pylist()),
    )


def _grade(rows: pa.Table, grade: str) -> Grade:
    least, most = RANGES[grade]
    apart = [o for o in APART if o in {*rows["outcome_a"].to_pylist(), *rows["outcome_b"].to_pylist()}]
    outcomes = (*map(str, range(least, most + 1)), *apart)
    return Grade(
        grade=grade,
        outcomes=outcomes,
        matrix=_plain(_by_outcome(rows, outcomes)),
        whole=_of_grade("", rows, grade),
        by_app=tuple(_of_grade(app, only(rows, app=app), grade) for app in _apps(rows)),
    )


def _of_grade(name: str, rows: pa.Table, grade: str) -> OfGrade:
    least, most = RANGES[grade]
    classes = tuple(map(str, range(least, most + 1)))
    scored = rows.filter(pc.and_(*(pc.equal(rows[c], "scored") for c in ("outcome_a", "outcome_b"))))
    whole = _by_outcome(scored, classes)
    told = rows.filter(pc.and_(*(pc.is_in(rows[c], pa.array(["scored", "na"])) for c in ("outcome_a", "outcome_b"))))
    applies = _by_outcome(told, ("scored", "na"))
    return OfGrade(
        name=name,
        graded=core.agreement(whole),
        weighted=core.interval(whole, core.weighted_kappa) if len(classes) > 2 else None,
        rank=core.interval(_by_value(scored), core.rank_correlation),
        applies=core.interval(applies, core.kappa),
        n_applies=int(applies.sum()),
    )


def _by_outcome(rows: pa.Table, outcomes: Sequence[str]) -> Counts:
    return _table(rows, _places(rows, "a", outcomes), _places(rows, "b", outcomes), len(outcomes))


def _places(rows: pa.Table, side: str, outcomes: Sequence[str]) -> list[int]:
    """Where each row's outcome of a side stands among these; values count as the nearest whole grade."""
    columns = (rows[f"{what}_{side}"].to_pylist() for what in ("outcome", "value"))
    at = {o: i for i, o in enumerate(outcomes)}
    # A half goes up, so that 3.5 and 4.5 are one grade apart.
    named = (
        str(int(np.floor(v + 0.5))) if o == "scored" and "scored" not in at else o
        for o, v in zip(*columns, strict=True)
    )
    return [at[name] for name in named]


def _by_value(rows: pa.Table) -> Counts:
    """(m, k, l) tables of the values as they are, averages of several samples included."""
    places, sizes = [], []
    for side in "ab":
        values, at = np.unique(rows[f"value_{side}"].to_numpy().astype(np.float64), return_inverse=True)
        places.append(at)
        sizes.append(max(1, len(values)))
    return core.tally(_questions(rows), places[0], places[1], (sizes[0], sizes[1]), _numbers(rows))


def _outcomes(rows: pa.Table) -> Counts:
    first, second = ([SAID.index(o) for o in rows[c].to_pylist()] for c in ("outcome_a", "outcome_b"))
    return _table(rows, first, second, len(SAID))


def _labels(rows: pa.Table) -> Counts:
    """Tables of the claims that both sides gave a label."""
    return _outcomes(rows)[:, : len(JUDGED), : len(JUDGED)]


def _table(rows: pa.Table, first: Sequence[int], second: Sequence[int], size: int) -> Counts:
    """Tables by question, from rows with `question` and `n`."""
    a, b = (np.array(places, np.int64) for places in (first, second))
    return core.tally(_questions(rows), a, b, (size, size), _numbers(rows))


def _questions(rows: pa.Table) -> npt.NDArray[np.str_]:
    return np.array(rows["question"].to_pylist(), np.str_)


def _numbers(rows: pa.Table) -> Counts:
    return np.asarray(rows["n"].to_numpy(), np.int64)


def _plain(counts: Counts) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in counts.sum(axis=0))


def _apps(rows: pa.Table) -> list[str]:
    """The apps, where there are several."""
    names = sorted({name for name in rows["app"].to_pylist() if name is not None})
    return names if len(names) > 1 else []
