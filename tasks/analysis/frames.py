"""Queries of the published warehouse as frames, with sums and counts by question."""

from collections.abc import Sequence

import polars as pl

from tasks.stats import agreement
from tasks.store.lake import frame
from tasks.store.query import sql
from tasks.store.warehouse import Reader


def select(reader: Reader, name: str, **params: object) -> pl.DataFrame:
    """Run `sql/analysis/<name>.sql`; parameters that the query does not use are ignored."""
    return frame(reader.table(sql(f"analysis/{name}"), params))


def groups(by: str, *frames: pl.DataFrame, common: bool = False) -> list[tuple[str, list[pl.DataFrame]]]:
    """Split frames by app or generator; returns (name, frames). Empty if there is only one name.

    Args:
        by: The column to split by.
        common: Keep only names that occur in all frames.
    """
    names = [set(frame[by].drop_nulls()) for frame in frames]
    found = sorted(set.intersection(*names) if common else set.union(*names))
    return [(name, [f.filter(pl.col(by) == name) for f in frames]) for name in found] if len(found) > 1 else []


def total(rows: pl.DataFrame, column: str = "n") -> int:
    """Sum of a column of counts."""
    return int(rows[column].sum())


def by_question(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Sum columns by question, as floats; sorted by `question`."""
    return rows.group_by("question").agg(pl.col(columns).sum().cast(pl.Float64)).sort("question")


def tally(rows: pl.DataFrame, outcomes: Sequence[str], a: str = "outcome_a", b: str = "outcome_b") -> agreement.Counts:
    """(m, k, k) contingency tables of m questions: counts by k outcomes under A and k under B.

    Args:
        rows: Rows with `question`, `n`, and the columns named by `a` and `b`.
    """
    places = {outcome: i for i, outcome in enumerate(outcomes)}
    first, second = (rows[c].replace_strict(places, return_dtype=pl.Int64).to_numpy() for c in (a, b))
    shape = (len(outcomes), len(outcomes))
    return agreement.tally(rows["question"].to_numpy(), first, second, shape, rows["n"].to_numpy())
