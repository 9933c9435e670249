"""A change between two ranges of days in two: the product's, and the shift of the judge where that was changed too.

METHODS section 14. The shift is measured on traces that both recipes have scored, such as days that were backfilled.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.analysis.compare.differences import ask, by_question, names_of, only, sums_of
from tasks.analysis.compare.findings import Shift
from tasks.analysis.compare.selectors import Filters, Row, Side, differences
from tasks.core.schemas import top
from tasks.stats.comparison import Overlap, paired, product_change, unpaired
from tasks.store.warehouse import Reader

PLACES = {"before": "of the first range", "after": "of the second range", "elsewhere": "of other days"}


def shifts(
    reader: Reader, a: Side, b: Side, filters: Filters, rows: tuple[pa.Table, pa.Table], notes: list[str]
) -> tuple[Shift, ...]:
    """The change of all, and of each app and generator; nothing where the judge did not change, or can't be told apart.

    Args:
        rows: Those of `side.sql` of the number, of either side.
        notes: Gets what should be said of it.
    """
    if a.recipe["recipe"] == b.recipe["recipe"]:
        notes.append(f"Both ranges were judged by {_judge(a)} under one recipe: the whole change is the product's.")
        return ()
    if more := [d for d in differences(a.recipe, b.recipe) if d != "judge"]:
        notes.append(
            f"More than the judge changed between the ranges ({', '.join(more)}): its shift holds all of that."
        )
    number = names_of(rows[0], "number")[0]
    overlaps = {
        "before": _overlap(reader, a, b, number, filters, a),
        "after": _overlap(reader, a, b, number, filters, b),
    }
    if not any(o.num_rows for o in overlaps.values()):
        overlaps["elsewhere"] = _overlap(reader, a, b, number, filters, None)
    place = max(overlaps, key=lambda p: _count(overlaps[p]))
    overlap = overlaps[place]
    changed = f"The judge changed too, from {_judge(a)} to {_judge(b)}"
    if not _enough(overlap):
        notes.append(
            f"{changed}, and there is no overlap of traces that both have judged: the change is the product's and the "
            f"judge's together. To tell them apart: {backfill(b.recipe, a.first, a.last)}"
        )
        return ()
    notes.append(
        f"{changed}. Its shift is measured on {_count(overlap):,} traces {PLACES[place]} that both have judged."
    )
    found = [_shift("", *rows, overlap, place, number)]
    for by in ("app", "generator"):
        names = sorted(set.intersection(*({*names_of(t, by)} for t in (*rows, overlap))))
        for name in names if len(names) > 1 else ():
            before, after, both = (only(t, **{by: name}) for t in (*rows, overlap))
            if _enough(both):
                found.append(_shift(name, before, after, both, place, number, by, name))
    return tuple(found)


def backfill(recipe: Row, first: object, last: object) -> str:
    """The command that scores days with a recipe's judge; a cascade has no file, it stands in the recipe."""
    cascade = len(recipe["judge_versions"]) > 1
    by = f"--recipe {recipe['recipe_name']}" if cascade else f"--judge configs/judges/{recipe['judge_name']}.yaml"
    return f"leadline backfill {by} --from {first or 'DAY'} --to {last or 'DAY'}"


def _shift(
    name: str, before: pa.Table, after: pa.Table, overlap: pa.Table, place: str, number: str, *seed: str
) -> Shift:
    moved = by_question(overlap, "total_a", "total_b", "n")
    change = moved["total_b"] - moved["total_a"]
    side = {"before": before, "after": after}.get(place)
    share, beside = None, Overlap(change, moved["n"])
    if side is not None:
        whole = by_question(side, "n")
        at = {q: i for i, q in enumerate(whole["question"])}
        where = [at[q] for q in moved["question"]]
        totals, counts = np.zeros(len(at)), np.zeros(len(at))
        totals[where], counts[where] = change, moved["n"]
        share, beside = float(moved["n"].sum() / whole["n"].sum()), Overlap(totals, counts)
    old, new = sums_of(before), sums_of(after)
    return Shift(
        name=name,
        total=unpaired(old, new, top(number), number, *seed),
        product=product_change(old, new, beside, place),
        judge=paired(moved["total_a"], moved["total_b"], moved["n"], top(number), number, *seed),
        place=place,
        share=share,
    )


def _overlap(reader: Reader, a: Side, b: Side, number: str, filters: Filters, where: Side | None) -> pa.Table:
    """Rows of `both.sql` of the traces that have the number under both recipes, of one range or of all days."""
    first, last = (where.first, where.last) if where else (None, None)
    scope = {"app": filters.app, "first": first, "last": last}
    rows = ask(reader, "both", recipe_a=a.recipe["recipe"], recipe_b=b.recipe["recipe"], **scope)
    rows = only(rows, number=number)
    return rows.filter(pc.greater(rows["n"], 0))


def _enough(overlap: pa.Table) -> bool:
    """Whether an interval can be had of it."""
    return len(names_of(overlap, "question")) > 1


def _count(rows: pa.Table) -> int:
    return int(pc.sum(rows["n"]).as_py() or 0)


def _judge(side: Side) -> str:
    return f"{side.recipe['judge_name']} ({side.recipe['judge_version']})"
