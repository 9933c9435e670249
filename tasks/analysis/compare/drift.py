"""Drift attribution: split a change between two ranges of days into the product's part and the judge's part.

Method: docs/methods.md#judge-versions-and-backfill.

The judge's part is measured on traces that were scored under both recipes, for example on backfilled days.
"""

import polars as pl

from tasks.analysis.compare.arms import Arm, definition_changes
from tasks.analysis.compare.differences import arrays, only, pair_estimate, sums_of
from tasks.analysis.compare.results import Drift
from tasks.analysis.frames import by_question, groups, select, total
from tasks.core.config import scale
from tasks.run.selectors import Filters, Row
from tasks.stats.comparison import Overlap, product_change, unpaired
from tasks.store.warehouse import Reader

PLACES = {"before": "of the first range", "after": "of the second range", "elsewhere": "of other days"}


def attribute(
    reader: Reader, a: Arm, b: Arm, filters: Filters, rows: tuple[pl.DataFrame, pl.DataFrame], notes: list[str]
) -> tuple[Drift, ...]:
    """Attribute the change, for all traces and for each app and generator.

    Args:
        rows: Rows of `numbers.sql` with the main number, of A and B.
        notes: List to which a note is added: what the judge's part was measured on, or why it is unknown.

    Returns:
        The parts; empty if the judge did not change or its part can't be measured.
    """
    if a.recipe["recipe"] == b.recipe["recipe"]:
        notes.append(f"Both ranges were judged by {_judge(a)} under one recipe: the whole change is the product's.")
        return ()
    if changes := definition_changes(a.recipe, b.recipe):
        notes.append(
            f"More than the judge changed between the ranges ({', '.join(changes)}): the judge's part includes it."
        )
    number = str(rows[0]["number"][0])
    overlaps = {
        "before": _overlap(reader, a, b, number, filters, a),
        "after": _overlap(reader, a, b, number, filters, b),
    }
    if all(o.is_empty() for o in overlaps.values()):
        overlaps["elsewhere"] = _overlap(reader, a, b, number, filters, None)
    place = max(overlaps, key=lambda p: total(overlaps[p]))
    overlap = overlaps[place]
    changed = f"The judge changed too, from {_judge(a)} to {_judge(b)}"
    if not _has_interval(overlap):
        notes.append(
            f"{changed}, and there is no overlap of traces that both have judged: the change is the product's and the "
            f"judge's together. To separate them: {backfill(b.recipe, a.first, a.last)}"
        )
        return ()
    notes.append(
        f"{changed}. The judge's part is measured on {total(overlap):,} traces {PLACES[place]} that both have judged."
    )
    found = [_drift("", *rows, overlap, place, number)]
    for by in ("app", "generator"):
        for name, (before, after, both) in groups(by, *rows, overlap, common=True):
            if _has_interval(both):
                found.append(_drift(name, before, after, both, place, number, by, name))
    return tuple(found)


def backfill(recipe: Row, first: object, last: object) -> str:
    """The command that scores days with a recipe's judge. A cascade has no file, so the command names the recipe."""
    cascade = len(recipe["judge_versions"]) > 1
    by = f"--recipe {recipe['recipe_name']}" if cascade else f"--judge {recipe['judge_name']}"
    return f"leadline backfill {by} --from {first or 'DAY'} --to {last or 'DAY'}"


def _drift(
    name: str, before: pl.DataFrame, after: pl.DataFrame, overlap: pl.DataFrame, place: str, number: str, *seed: str
) -> Drift:
    moved = by_question(overlap, "total_a", "total_b", "n").with_columns(change=pl.col("total_b") - pl.col("total_a"))
    own = {"before": before, "after": after}.get(place)
    share = None
    if own is None:
        beside = Overlap(*arrays(moved, "change", "n"))
    else:
        whole = (
            by_question(own, "n").join(moved, "question", "left", suffix="_both", maintain_order="left").fill_null(0)
        )
        beside = Overlap(*arrays(whole, "change", "n_both"))
        share = float(beside.counts.sum() / arrays(whole, "n")[0].sum())
    old, new = sums_of(before), sums_of(after)
    return Drift(
        name=name,
        total=unpaired(old, new, scale(number), number, *seed),
        product=product_change(old, new, beside, place),
        judge=pair_estimate(overlap, number, *seed),
        place=place,
        share=share,
    )


def _overlap(reader: Reader, a: Arm, b: Arm, number: str, filters: Filters, days: Arm | None) -> pl.DataFrame:
    """Rows of `paired_numbers.sql` for traces that have the number under both recipes.

    Args:
        days: The arm whose days are used; None for all days.
    """
    first, last = (days.first, days.last) if days else (None, None)
    recipes = {"recipe_a": a.recipe["recipe"], "recipe_b": b.recipe["recipe"]}
    rows = select(reader, "compare/paired_numbers", **recipes, app=filters.app, first=first, last=last)
    return only(rows, number).filter(pl.col("n") > 0)


def _has_interval(overlap: pl.DataFrame) -> bool:
    return overlap["question"].n_unique() > 1


def _judge(arm: Arm) -> str:
    return f"{arm.recipe['judge_name']} ({arm.recipe['judge_version']})"
