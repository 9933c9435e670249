"""Compare claims of the two arms: changed labels, failure patterns, and people's labels.

This module also reads the texts of flipped claims, with their chunks and explanations.
"""

from typing import Any

import numpy as np
import polars as pl

from tasks.analysis.agreement.raters import PEOPLE, Rater, join_ratings
from tasks.analysis.compare.arms import Arm
from tasks.analysis.compare.results import LABELS, OUTCOMES, AgainstPeople, Labels
from tasks.analysis.frames import groups, select, tally, total
from tasks.run.selectors import Filters, Row
from tasks.stats import agreement
from tasks.stats.gains import gain
from tasks.store.warehouse import Reader

K = len(LABELS)


def labels(rows: pl.DataFrame) -> Labels | None:
    """Count changed labels and measure agreement of the arms; None without claims.

    Args:
        rows: Rows of `labels.sql`.
    """
    if rows.is_empty():
        return None
    counts = tally(rows, OUTCOMES)
    total = counts.sum(axis=0)
    return Labels(
        outcomes=OUTCOMES,
        matrix=tuple(map(tuple, total.tolist())),
        agreement=agreement.agreement(counts[:, :K, :K]),
        flipped=int(total[:K, :K].sum() - np.trace(total[:K, :K])),
        groups=tuple(
            (by, name, agreement.agreement(tally(part, OUTCOMES)[:, :K, :K]))
            for by in ("app", "generator")
            for name, (part,) in groups(by, rows)
        ),
    )


def flipped(reader: Reader, scope: dict[str, object], most: int) -> tuple[Row, ...]:
    """The most confident disagreements, with claim text, cited chunks, and evidence and explanation of both arms."""
    chosen = select(reader, "compare/flips", **scope, most=most)
    if chosen.is_empty():
        return ()
    texts = select(reader, "compare/claim_texts", **scope, claim_ids=chosen["claim_id"].to_list())
    names = ["deciding_chunk_id", "deciding_chunk_text", "explanation"]
    a, b = (
        texts.filter(pl.col("recipe") == scope[f"recipe_{arm}"])
        .unique("claim_id", keep="last", maintain_order=True)
        .rename({name: f"{name}_{arm}" for name in names})
        .drop("recipe")
        for arm in "ab"
    )
    a, b = a.rename({"cited_chunk_ids": "cited"}), b.drop("text", "cited_chunk_ids")
    both = chosen.join(a, "claim_id", "left", maintain_order="left").join(b, "claim_id", "left", maintain_order="left")
    return tuple(both.to_dicts())


def separate_claims(reader: Reader, a: Arm, b: Arm, filters: Filters) -> dict[str, Any]:
    """Outcomes and failure patterns for arms without common claims, as fields of `Comparison`."""
    counts = [select(reader, "compare/claim_counts", **arm.scope(filters.app)) for arm in (a, b)]
    outcomes = []
    for of_arm in counts:
        found = dict(of_arm.filter(kind="outcome").select("name", "n").iter_rows())
        outcomes.append({outcome: found[outcome] for outcome in OUTCOMES if outcome in found})
    of_a, of_b = (c.filter(kind="pattern").select("name", "n") for c in counts)
    both = of_a.join(of_b, "name", "full", suffix="_b", coalesce=True).sort("name")
    patterns = both.select(
        pattern="name", n_a=pl.col("n").fill_null(0), n_b=pl.col("n_b").fill_null(0), n_both=pl.lit(None, pl.Int64)
    )
    return {"outcomes": tuple(outcomes), "patterns": tuple(patterns.to_dicts())}


def against_people(reader: Reader, a: Arm, b: Arm, filters: Filters) -> AgainstPeople | None:
    """Compare both arms with people's labels; None if no claim was reviewed.

    Method: docs/methods.md#judging-the-judges.

    Args:
        a: The baseline. Its recipe must cut answers into the same claims as B's recipe.
    """
    raters = {
        "a": Rater(a.name).labels(a.recipe["recipe"], filters),
        "b": Rater(b.name).labels(b.recipe["recipe"], filters),
        "people": Rater(PEOPLE, people=True).labels(a.recipe["recipe"], filters),
    }
    rows = join_ratings(reader, "against_people", raters)
    if rows.is_empty():
        return None
    drawn = rows.filter("drawn")
    first, second = (tally(drawn, LABELS, f"label_{arm}", "label_people") for arm in "ab")
    supported_a, supported_b = (agreement.one_against_rest(counts, 0) for counts in (first, second))
    return AgainstPeople(
        n=total(drawn),
        questions=drawn["question"].n_unique(),
        picked=total(rows) - total(drawn),
        accuracy=gain(supported_a, supported_b, agreement.balanced_accuracy, 0.0, "accuracy"),
        kappa=gain(first, second, agreement.kappa, -1.0, "kappa"),
    )
