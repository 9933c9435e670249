"""Results of `leadline agreement` as plain data, for the terminal, JSON and HTML pages."""

from dataclasses import dataclass

from tasks.analysis.compare.results import OUTCOMES as JUDGED_OUTCOMES
from tasks.core.labeling import UNDECIDED
from tasks.run.selectors import Filters, Row
from tasks.stats.agreement import Agreement, Interval

OUTCOMES = (*JUDGED_OUTCOMES, "tied", *UNDECIDED)  # of claims, by judges or people; the first four are labels


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label against all others, over claims that both raters labeled.

    Attributes:
        n_a: Claims to which A gave the label.
        both: Claims to which both gave the label.
        kappa: Cohen's kappa of having the label or not.
        recall: Share of B's claims with the label to which A gave it too.
    """

    label: str
    n_a: int
    n_b: int
    both: int
    kappa: Interval
    recall: Interval


@dataclass(frozen=True, slots=True)
class ClaimAgreement:
    """Agreement on labels of the same claims, of all apps (empty name) or of one app.

    Attributes:
        labels: Agreement on the four labels.
        supported: Agreement on supported or not; partially supported counts as not supported.
    """

    name: str
    labels: Agreement
    supported: Agreement


@dataclass(frozen=True, slots=True)
class Claims:
    """Labels of the same claims.

    Attributes:
        recipes: Recipes of A's and B's labels.
        outcomes: Possible outcomes. The first four are labels, and only these enter the numbers.
        matrix: `matrix[i][j]` is the number of claims with `outcomes[i]` by A and `outcomes[j]` by B.
        picked: Claims left out because they were picked for review because of their labels.
        disagreements: Rows of `label_disagreements.sql`, largest distance first.
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
    """Agreement on one grade of the same answers, of all apps (empty name) or of one app.

    Attributes:
        graded: Agreement over answers with a value by both; the classes are whole grades.
        weighted: Cohen's kappa with quadratic weights; None for grades of 0 or 1, for which it equals plain kappa.
        rank: Spearman's rank correlation of the unrounded values.
        applies: Cohen's kappa of "applies" or "N/A", over answers with a value or N/A by both.
        n_applies: Number of these answers.
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
        outcomes: Whole grades, then outcomes without a value, such as `na`, `unparsable`, `failed` or `unjudged`.
        matrix: `matrix[i][j]` is the number of answers with `outcomes[i]` by A and `outcomes[j]` by B.
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
        suite: Name of the suite; None if the answers are those of traces.
        picked: Grades left out because their answers were picked for review because of their labels.
        disagreements: Rows of `grade_disagreements.sql`, largest distance first.
    """

    suite: str | None
    by_grade: tuple[Grade, ...]
    picked: int
    disagreements: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class AgreementResult:
    """How far two raters agree.

    Attributes:
        b: Name of rater B, which measures such as recall treat as the truth.
        claims: Agreement on labels; None without claims that both labeled.
        grades: Agreement on grades; None without answers that both graded.
    """

    a: str
    b: str
    filters: Filters
    claims: Claims | None
    grades: Grades | None
    notes: tuple[str, ...] = ()
