"""What the sides of an agreement said of the same claims and answers: out of the published warehouse, in one query.

Each side is a SELECT of `sql/analysis/agreement/`, and so are the questions that are asked of two of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tasks.analysis.agreement.raters import Rater
from tasks.analysis.compare.findings import JUDGED
from tasks.analysis.compare.selectors import Filters
from tasks.store.query import over, sql
from tasks.store.warehouse import Reader


@dataclass(frozen=True)
class Said:
    """What one side said, as a SELECT with its parameters."""

    select: str
    params: Mapping[str, object]

    def renamed(self, side: str) -> "Said":
        """The same with parameters that end in `_<side>`, so that several can stand in one query."""
        select = re.sub(rf"\$({'|'.join(self.params)})\b", rf"$\g<1>_{side}", self.select)
        return Said(select, {f"{k}_{side}": v for k, v in self.params.items()})


def labels(of: Rater, recipe: str, filters: Filters) -> Said:
    """A side's labels of the claims of a recipe."""
    params = {"recipe": recipe, **filters.scope}
    if of.people:
        return Said(sql("analysis/agreement/people_labels"), {"reviewer": of.reviewer, **params})
    return Said(sql("analysis/agreement/judge_labels"), params)


def grades(of: Rater, recipes: Sequence[str] | None, suite: str | None, filters: Filters) -> Said:
    """A side's grades, of traces or of the cases of a suite.

    Args:
        recipes: Of traces that one of these has scored; None for all.
        suite: Version of the suite; None for traces.
    """
    if suite is not None:
        return Said(sql("analysis/agreement/suite_grades"), {"grader": of.grader, "suite": suite})
    params = {"recipes": recipes, **filters.scope}
    if of.people:
        return Said(sql("analysis/agreement/people_grades"), {"reviewer": of.reviewer, **params})
    return Said(sql("analysis/agreement/night_grades"), {"grader": of.grader, **params})


def ask(reader: Reader, question: str, sides: Mapping[str, Said], **params: object) -> pa.Table:
    """Result of `sql/analysis/agreement/<question>.sql` over what sides said, each in the relation `said_<side>`."""
    renamed = {f"said_{side}": said.renamed(side) for side, said in sides.items()}
    text = over(sql(f"analysis/agreement/{question}"), {name: said.select for name, said in renamed.items()})
    given = {k: v for said in renamed.values() for k, v in said.params.items()}
    return reader.table(text, {**given, "labels": list(JUDGED), **params})
