"""The numbers of two sides, out of the warehouse and into differences: by trace, by question, or as two samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.analysis.compare.findings import NUMBERS, Group
from tasks.core.schemas import top
from tasks.stats.comparison import Estimate, Sums, paired, repeat_variance, unpaired
from tasks.store.query import sql
from tasks.store.warehouse import Reader

ENOUGH_SHARED = 30  # questions; as many are compared in pairs, and fewer where they are half of a side's
By = Literal["app", "generator"]


def ask(reader: Reader, name: str, **params: object) -> pa.Table:
    """Result of `sql/analysis/compare/<name>.sql`; parameters that it does not use are left out."""
    return reader.table(sql(f"analysis/compare/{name}"), params)


def only(rows: pa.Table, **values: str) -> pa.Table:
    """The rows with these values."""
    for column, value in values.items():
        rows = rows.filter(pc.equal(rows[column], value))
    return rows


def names_of(rows: pa.Table, by: str) -> list[str]:
    """The different values of a column, in order."""
    return sorted(set(rows[by].to_pylist()))


def by_question(rows: pa.Table, *columns: str) -> dict[str, Any]:
    """Sums of the columns over each question, in an order that does not change: `question` and (m,) arrays."""
    sums = rows.group_by("question").aggregate([(c, "sum") for c in columns]).sort_by("question")
    arrays = {c: np.asarray(sums[f"{c}_sum"].to_numpy(), np.float64) for c in columns}
    return {"question": sums["question"].to_pylist(), **arrays}


def sums_of(rows: pa.Table) -> Sums:
    """Rows of `side.sql` of one number, by question."""
    found = by_question(rows, "total", "n", "squares")
    return Sums(found["total"], found["n"], found["squares"])


def pair_estimate(rows: pa.Table, number: str, *seed: str) -> Estimate:
    """The difference over traces that have the number under both; rows of `both.sql` of that number."""
    found = by_question(rows.filter(pc.greater(rows["n"], 0)), "total_a", "total_b", "n")
    return paired(found["total_a"], found["total_b"], found["n"], top(number), number, *seed)


def grouped(tables: Sequence[pa.Table], number: str, by: By, estimate: Callable[..., Estimate]) -> tuple[Group, ...]:
    """One number for each app or generator; nothing where there is one alone, of which all is said already.

    Args:
        tables: What `estimate` takes, narrowed down, before the number and the seed of its draws.
    """
    found = [only(t, number=number) for t in tables]
    names = sorted({name for t in found for name in names_of(t, by)})
    if len(names) < 2:
        return ()
    narrowed = ((name, [only(t, **{by: name}) for t in found]) for name in names)
    return tuple(Group(name, number, estimate(*rows, number, by, name)) for name, rows in narrowed)


def numbers_of(*tables: pa.Table) -> list[str]:
    """The numbers that all of the tables have."""
    return [n for n in NUMBERS if all(n in set(t["number"].to_pylist()) for t in tables)]


@dataclass(frozen=True)
class Populations:
    """Different traces on the two sides; rows of `side.sql`.

    Attributes:
        number: The main number, which decides whether questions are paired.
        may_pair: Whether the sides could have answered the same questions.
    """

    a: pa.Table
    b: pa.Table
    number: str
    may_pair: bool

    @cached_property
    def shared(self) -> int:
        """Questions, app by app, that both sides answered with a score."""
        return int(_questions(only(self.a, number=self.number), only(self.b, number=self.number)).num_rows)

    @property
    def questions(self) -> tuple[int, int]:
        """Questions, app by app, of each side."""
        a, b = (_means(only(t, number=self.number)).num_rows for t in (self.a, self.b))
        return int(a), int(b)

    @property
    def pairs(self) -> bool:
        """Whether questions are compared in pairs: where there are enough of them, or they are half of a side's."""
        enough = self.shared >= ENOUGH_SHARED or 2 * self.shared >= min(self.questions)
        return self.may_pair and self.shared >= 2 and enough

    def estimate(self, a: pa.Table, b: pa.Table, number: str, *seed: str) -> Estimate:
        """The difference in one number; rows of that number."""
        if not self.pairs:
            return unpaired(sums_of(a), sums_of(b), top(number), number, *seed)
        joined = _questions(a, b)
        found = by_question(joined.append_column("n", pa.array(np.ones(joined.num_rows))), "mean_a", "mean_b", "n")
        return paired(found["mean_a"], found["mean_b"], found["n"], top(number), number, *seed)

    def sizes(self) -> tuple[float, float]:
        """How many independent traces of each side would give its mean the variance that it has from noise."""
        a, b = (only(t, number=self.number) for t in (self.a, self.b))
        if not self.pairs:
            return float(pc.sum(a["n"]).as_py() or 0), float(pc.sum(b["n"]).as_py() or 0)
        joined = _questions(a, b)
        q = joined.num_rows
        x, y = (np.asarray(joined[c].to_numpy(), np.float64) for c in ("n_a", "n_b"))
        return q**2 / float((1 / x).sum()), q**2 / float((1 / y).sum())

    def repeats(self) -> tuple[float | None, float | None]:
        """Variance of one trace among those of the same question, app and generator, on each side."""
        a, b = (_arrays(only(t, number=self.number)) for t in (self.a, self.b))
        return repeat_variance(a), repeat_variance(b)


def _arrays(rows: pa.Table) -> Sums:
    total, n, squares = (np.asarray(rows[c].to_numpy(), np.float64) for c in ("total", "n", "squares"))
    return Sums(total, n, squares)


def _means(rows: pa.Table) -> pa.Table:
    """Mean of each app's question."""
    sums = rows.group_by(["app", "question"]).aggregate([("total", "sum"), ("n", "sum")])
    mean = pc.divide(sums["total_sum"], sums["n_sum"])
    return pa.table({"app": sums["app"], "question": sums["question"], "mean": mean, "n": sums["n_sum"]})


def _questions(a: pa.Table, b: pa.Table) -> pa.Table:
    """Questions that both answered, with the mean and the number of answers of each."""
    first = _means(a).rename_columns(["app", "question", "mean_a", "n_a"])
    second = _means(b).rename_columns(["app", "question", "mean_b", "n_b"])
    return first.join(second, ["app", "question"], join_type="inner").sort_by(
        [("app", "ascending"), ("question", "ascending")]
    )
