"""Differences of numbers between two arms: paired by trace, paired by question, or of two independent samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

from tasks.analysis.compare.results import NUMBERS, Group
from tasks.analysis.frames import by_question, groups
from tasks.core.config import scale
from tasks.stats.comparison import Estimate, Sums, paired, repeat_variance, unpaired
from tasks.stats.intervals import Numbers

ENOUGH_SHARED = 30  # common questions that suffice to pair arms by question; see `Populations.pairs`


def arrays(rows: pl.DataFrame, *columns: str) -> list[Numbers]:
    """Return columns as (n,) arrays of floats."""
    return [rows[c].cast(pl.Float64).to_numpy() for c in columns]


def only(rows: pl.DataFrame, number: str) -> pl.DataFrame:
    """The rows of one number."""
    return rows.filter(pl.col("number") == number)


def sums_of(rows: pl.DataFrame) -> Sums:
    """Sum rows of `numbers.sql` by question; all rows are of one number."""
    return Sums(*arrays(by_question(rows, "total", "n", "squares"), "total", "n", "squares"))


def pair_estimate(rows: pl.DataFrame, number: str, *seed: str) -> Estimate:
    """Estimate the difference over traces that have the number under both recipes.

    Args:
        rows: Rows of `paired_numbers.sql` with this number.
    """
    found = by_question(rows.filter(pl.col("n") > 0), "total_a", "total_b", "n")
    a, b, n = arrays(found, "total_a", "total_b", "n")
    return paired(a, b, n, _width(number), number, *seed)


def grouped(
    tables: Sequence[pl.DataFrame], number: str, by: Literal["app", "generator"], estimate: Callable[..., Estimate]
) -> tuple[Group, ...]:
    """Estimate one number for each app or generator; empty if there is only one.

    Args:
        tables: First arguments of `estimate`. The number and the random seed follow.
    """
    found = groups(by, *(only(t, number) for t in tables))
    return tuple(Group(name, number, estimate(*rows, number, by, name)) for name, rows in found)


def numbers_of(*tables: pl.DataFrame) -> list[str]:
    """Numbers that occur in all tables."""
    return [n for n in NUMBERS if all(n in set(t["number"]) for t in tables)]


@dataclass(frozen=True)
class Populations:
    """Two arms with different traces.

    Attributes:
        a: Rows of `numbers.sql` of the baseline.
        b: Rows of `numbers.sql` of the candidate.
        number: The main number. Its questions decide whether the arms are paired.
        may_pair: Whether the arms may be paired by question.
    """

    a: pl.DataFrame
    b: pl.DataFrame
    number: str
    may_pair: bool

    @cached_property
    def main(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows of the main number."""
        return only(self.a, self.number), only(self.b, self.number)

    @cached_property
    def shared(self) -> int:
        """Number of questions, per app, for which both arms have the main number."""
        return _shared_questions(*self.main).height

    @cached_property
    def questions(self) -> tuple[int, int]:
        """Number of questions, per app, of each arm."""
        a, b = (_means(rows).height for rows in self.main)
        return a, b

    @property
    def pairs(self) -> bool:
        """Whether to pair by question: with enough common questions, or if they are at least half of an arm's."""
        enough = self.shared >= ENOUGH_SHARED or 2 * self.shared >= min(self.questions)
        return self.may_pair and self.shared >= 2 and enough

    def estimate(self, a: pl.DataFrame, b: pl.DataFrame, number: str, *seed: str) -> Estimate:
        """Estimate the difference in one number, from rows of this number."""
        if not self.pairs:
            return unpaired(sums_of(a), sums_of(b), scale(number), number, *seed)
        found = by_question(_shared_questions(a, b).with_columns(one=1), "mean", "mean_b", "one")
        mean_a, mean_b, n = arrays(found, "mean", "mean_b", "one")
        return paired(mean_a, mean_b, n, _width(number), number, *seed)

    def sizes(self) -> tuple[float, float]:
        """Effective sizes: numbers of independent traces whose means would have the same variance from noise."""
        if not self.pairs:
            a, b = (float(rows["n"].sum()) for rows in self.main)
            return a, b
        shared = _shared_questions(*self.main)
        a, b = (shared.height**2 / float((1 / n).sum()) for n in arrays(shared, "n", "n_b"))
        return a, b

    def repeats(self) -> tuple[float | None, float | None]:
        """Variance between traces of the same question, app and generator, in each arm."""
        a, b = (repeat_variance(Sums(*arrays(rows, "total", "n", "squares"))) for rows in self.main)
        return a, b


def _width(number: str) -> float:
    least, most = scale(number)
    return most - least


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean by app and question."""
    total, n = pl.col("total").sum(), pl.col("n").sum()
    return rows.group_by("app", "question").agg((total / n).alias("mean"), n)


def _shared_questions(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Questions that both arms answered: `mean` and `n` of A's answers, `mean_b` and `n_b` of B's."""
    return _means(a).join(_means(b), on=["app", "question"], suffix="_b").sort("app", "question")
