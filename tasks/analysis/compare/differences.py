"""Numbers of the warehouse into differences: by trace, by question, or as two samples."""

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

ENOUGH_SHARED = 30  # questions; as many are compared in pairs, and fewer where they are half of an arm's


def arrays(rows: pl.DataFrame, *columns: str) -> list[Numbers]:
    """The columns as (n,) arrays of floats."""
    return [rows[c].cast(pl.Float64).to_numpy() for c in columns]


def only(rows: pl.DataFrame, number: str) -> pl.DataFrame:
    """The rows of one number."""
    return rows.filter(pl.col("number") == number)


def sums_of(rows: pl.DataFrame) -> Sums:
    """Rows of `numbers.sql` of one number, by question."""
    return Sums(*arrays(by_question(rows, "total", "n", "squares"), "total", "n", "squares"))


def pair_estimate(rows: pl.DataFrame, number: str, *seed: str) -> Estimate:
    """The difference over traces that have the number under both recipes.

    Args:
        rows: Rows of `paired_numbers.sql` of that number.
    """
    found = by_question(rows.filter(pl.col("n") > 0), "total_a", "total_b", "n")
    a, b, n = arrays(found, "total_a", "total_b", "n")
    return paired(a, b, n, _width(number), number, *seed)


def grouped(
    tables: Sequence[pl.DataFrame], number: str, by: Literal["app", "generator"], estimate: Callable[..., Estimate]
) -> tuple[Group, ...]:
    """One number for each app or generator; none where there is only one.

    Args:
        tables: First arguments of `estimate`; the number and the seed of its draws follow.
    """
    found = groups(by, *(only(t, number) for t in tables))
    return tuple(Group(name, number, estimate(*rows, number, by, name)) for name, rows in found)


def numbers_of(*tables: pl.DataFrame) -> list[str]:
    """The numbers that all of the tables have."""
    return [n for n in NUMBERS if all(n in set(t["number"]) for t in tables)]


@dataclass(frozen=True)
class Populations:
    """Different traces in the two arms; rows of `numbers.sql`.

    Attributes:
        number: The main number; its questions decide whether the arms are paired.
        may_pair: Whether the arms could have answered the same questions.
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
        """Questions, app by app, that both arms answered with a score."""
        return _shared_questions(*self.main).height

    @cached_property
    def questions(self) -> tuple[int, int]:
        """Questions, app by app, of each arm."""
        a, b = (_means(rows).height for rows in self.main)
        return a, b

    @property
    def pairs(self) -> bool:
        """Whether questions are compared in pairs: where there are enough of them, or they are half of an arm's."""
        enough = self.shared >= ENOUGH_SHARED or 2 * self.shared >= min(self.questions)
        return self.may_pair and self.shared >= 2 and enough

    def estimate(self, a: pl.DataFrame, b: pl.DataFrame, number: str, *seed: str) -> Estimate:
        """The difference in one number; rows of that number."""
        if not self.pairs:
            return unpaired(sums_of(a), sums_of(b), scale(number), number, *seed)
        found = by_question(_shared_questions(a, b).with_columns(one=1), "mean", "mean_b", "one")
        mean_a, mean_b, n = arrays(found, "mean", "mean_b", "one")
        return paired(mean_a, mean_b, n, _width(number), number, *seed)

    def sizes(self) -> tuple[float, float]:
        """How many independent traces of each arm would give its mean the variance that it has from noise."""
        if not self.pairs:
            a, b = (float(rows["n"].sum()) for rows in self.main)
            return a, b
        shared = _shared_questions(*self.main)
        a, b = (shared.height**2 / float((1 / n).sum()) for n in arrays(shared, "n", "n_b"))
        return a, b

    def repeats(self) -> tuple[float | None, float | None]:
        """Variance of one trace among those of the same question, app and generator, in each arm."""
        a, b = (repeat_variance(Sums(*arrays(rows, "total", "n", "squares"))) for rows in self.main)
        return a, b


def _width(number: str) -> float:
    least, most = scale(number)
    return most - least


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean of each app's question."""
    total, n = pl.col("total").sum(), pl.col("n").sum()
    return rows.group_by("app", "question").agg((total / n).alias("mean"), n)


def _shared_questions(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Questions that both arms answered: `mean` and `n` of A's answers, `mean_b` and `n_b` of B's."""
    return _means(a).join(_means(b), on=["app", "question"], suffix="_b").sort("app", "question")
