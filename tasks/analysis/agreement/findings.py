"""What `leadline agreement` finds out about two sides, as plain data: for the terminal, as JSON, and for a page.

Left out: how it is found out (`agreement.py`).
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from tasks.analysis.compare.findings import OUTCOMES, plain
from tasks.analysis.compare.selectors import Filters, Row
from tasks.stats.agreement import Agreement, Interval

SAID = (*OUTCOMES, "tied", "cant_tell")  # of claims, by judges and people; the first four are labels


@dataclass(frozen=True, slots=True)
class OneLabel:
    """One label against all others, over claims that both sides labelled.

    Attributes:
        n_a: Claims that A gave it.
        both: Claims that both gave it.
        kappa: Cohen's kappa of "has it or not".
        recall: Share of B's that A gave it too.
    """

    label: str
    n_a: int
    n_b: int
    both: int
    kappa: Interval
    recall: Interval


@dataclass(frozen=True, slots=True)
class OfClaims:
    """Agreement on labels of the same claims; of all, or of one app.

    Attributes:
        labels: Over the four labels.
        supported: Supported against not (in part is not).
    """

    name: str
    labels: Agreement
    supported: Agreement


@dataclass(frozen=True, slots=True)
class Claims:
    """Labels of the same claims.

    Attributes:
        recipes: Recipes under which the claims are A's and B's.
        outcomes: What a side can say; the first four are labels, and only these enter the numbers.
        matrix: `matrix[i][j]` claims that A gave `outcomes[i]` and B `outcomes[j]`.
        picked: Claims left out since they were picked for review because of their labels.
        worst: Rows of `sql/analysis/agreement/label_disagreements.sql`.
    """

    recipes: tuple[str, str]
    outcomes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    whole: OfClaims
    each: tuple[OneLabel, ...]
    by_app: tuple[OfClaims, ...]
    picked: int
    worst: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class OfGrade:
    """Agreement on one grade of the same answers; of all, or of one app.

    Attributes:
        graded: Over answers that both gave a value; the classes are whole grades.
        weighted: Cohen's kappa with quadratic weights; None of grades that are 0 or 1, of which it says nothing new.
        rank: Spearman's rank correlation of the values as they are.
        applies: Cohen's kappa of "the grade applies or is N/A", over answers of which both said one or the other.
        n_applies: These.
    """

    name: str
    graded: Agreement
    weighted: Interval | None
    rank: Interval
    applies: Interval
    n_applies: int


@dataclass(frozen=True, slots=True)
class Grade:
    """One grade of the same answers.

    Attributes:
        outcomes: Whole grades, then what is none: `na`, `unparsable`, `failed` or `unjudged`.
        matrix: `matrix[i][j]` answers that A gave `outcomes[i]` and B `outcomes[j]`.
    """

    grade: str
    outcomes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    whole: OfGrade
    by_app: tuple[OfGrade, ...]


@dataclass(frozen=True, slots=True)
class Grades:
    """Grades of the same answers.

    Attributes:
        suite: Name of the suite that the answers are cases of; None of traces.
        picked: Grades left out since their answers were picked for review because of what was said of them.
        worst: Rows of `sql/analysis/agreement/grade_disagreements.sql`.
    """

    suite: str | None
    each: tuple[Grade, ...]
    picked: int
    worst: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Agreed:
    """Everything that is known of how far two sides agree.

    Attributes:
        a: Side A's name.
        b: Side B's, which is taken as the truth where there has to be one.
        claims: None where they have labelled no claim both.
        grades: None where they have graded no answer both.
    """

    a: str
    b: str
    filters: Filters
    claims: Claims | None
    grades: Grades | None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
