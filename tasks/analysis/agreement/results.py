"""Results of `leadline agreement` as plain data, for the terminal, JSON and a page."""

from dataclasses import dataclass

from tasks.analysis.compare.results import OUTCOMES as JUDGED_OUTCOMES
from tasks.core.labeling import UNDECIDED
from tasks.run.selectors import Filters, Row
from tasks.stats.agreement import Agreement, Interval

OUTCOMES = (*JUDGED_OUTCOMES, "tied", *UNDECIDED)  # of claims, by judges and people; the first four are labels


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """One label against all others, over claims that both raters labeled.

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
class ClaimAgreement:
    """Agreement on labels of the same claims; of all (no name), or of one app.

    Attributes:
        labels: Over the four labels.
        supported: Supported or not; partially supported is not.
    """

    name: str
    labels: Agreement
    supported: Agreement


@dataclass(frozen=True, slots=True)
class Claims:
    """Labels of the same claims.

    Attributes:
        recipes: Recipes under which the claims are A's and B's.
        outcomes: Possible outcomes; the first four are labels, and only these enter the numbers.
        matrix: `matrix[i][j]` claims that A gave `outcomes[i]` and B `outcomes[j]`.
        picked: Claims left out since they were picked for review because of their labels.
        disagreements: Rows of `label_disagreements.sql`, the furthest apart first.
    """

    recipes: tuple[str, str]
    outcomes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    whole: ClaimAgreement
    by_label: tuple[LabelAgreement, ...]
    by_app: tuple[ClaimAgreement, ...]
    picked: int
    disagreements: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class GradeAgreement:
    """Agreement on one grade of the same answers; of all (no name), or of one app.

    Attributes:
        graded: Over answers that both gave a value; the classes are whole grades.
        weighted: Cohen's kappa with quadratic weights; None of grades that are 0 or 1, where it is plain kappa.
        rank: Spearman's rank correlation of the values as they are.
        applies: Cohen's kappa of "the grade applies or is N/A", over answers that both rated.
        n_applies: Their number.
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
    whole: GradeAgreement
    by_app: tuple[GradeAgreement, ...]


@dataclass(frozen=True, slots=True)
class Grades:
    """Grades of the same answers.

    Attributes:
        suite: Name of the suite whose cases the answers are; None of traces.
        picked: Grades left out since their answers were picked for review because of their labels.
        disagreements: Rows of `grade_disagreements.sql`, the furthest apart first.
    """

    suite: str | None
    by_grade: tuple[Grade, ...]
    picked: int
    disagreements: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class AgreementResult:
    """How far two raters agree.

    Attributes:
        b: Name of rater B, the truth where a measure needs one.
        claims: None where they have labeled no claim both.
        grades: None where they have graded no answer both.
    """

    a: str
    b: str
    filters: Filters
    claims: Claims | None
    grades: Grades | None
    notes: tuple[str, ...] = ()
