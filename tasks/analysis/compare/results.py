"""Results of `leadline compare` as plain data for the terminal, JSON and pages. A is the baseline, B the candidate."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from tasks.core.grades import GRADES
from tasks.run.selectors import Filters, Row
from tasks.stats.agreement import Agreement
from tasks.stats.comparison import Estimate
from tasks.stats.gains import Gain

NUMBERS = (
    "groundedness", "faithfulness", "utilization", "context_relevance", "answer_relevance", "answerability",
    "citation_groundedness", *(f"grade_{grade}" for grade in GRADES),
)  # fmt: skip
MAIN = ("groundedness", "citation_groundedness")  # by default, the first that both arms have
OUTCOMES = ("supported", "partially_supported", "unsupported", "contradicted", "abstained", "unjudged", "na")
LABELS = OUTCOMES[:4]


@dataclass(frozen=True, slots=True)
class ArmName:
    """Names of an arm, its recipe and its judge. `first` and `last` are its days; None for no limit."""

    kind: str
    value: str
    name: str
    first: date | None
    last: date | None
    recipe: str
    recipe_name: str
    judge_name: str
    judge_version: str


@dataclass(frozen=True, slots=True)
class Group:
    """The estimate of a number for all traces (empty name), or for one app or generator."""

    name: str
    number: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Noise:
    """How much identical runs differ, compared with the difference between the arms.

    Attributes:
        source: `judge`: from requests that were judged twice. `repeats`: from questions with several traces.
        spread: Standard deviation of the difference of two identical runs of this size; None if never measured.
        ratio: |difference| / spread; None if the spread is unknown or 0.
        note: What the noise was measured on, or how to measure it.
    """

    source: str
    spread: float | None
    ratio: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift attribution: the change between two ranges of days is the sum of the product's part and the judge's part.

    Attributes:
        name: The app or generator; empty for all traces.
        place: Days on which both recipes have scored the same traces: `before` (the first range), `after` (the second)
            or `elsewhere`.
        share: Share of that range's traces that both recipes have scored; None for `elsewhere`.
    """

    name: str
    total: Estimate
    product: Estimate
    judge: Estimate
    place: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Labels:
    """Outcomes of the same claims in both arms.

    Attributes:
        matrix: `matrix[i][j]` is the number of claims with `outcomes[i]` under A and `outcomes[j]` under B.
        flipped: Number of claims with different labels.
        groups: Column, name and agreement of each app and generator.
    """

    outcomes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    agreement: Agreement
    flipped: int
    groups: tuple[tuple[str, str, Agreement], ...]


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """Two judges compared with people's labels of the same claims.

    Attributes:
        n: Number of randomly sampled claims that both judges and people labeled.
        questions: Number of distinct questions.
        picked: Claims left out because they were picked for review because of their labels.
        accuracy: Balanced accuracy of supported or not; partially supported counts as not supported.
        kappa: Cohen's kappa of the four labels.
    """

    n: int
    questions: int
    picked: int
    accuracy: Gain
    kappa: Gain


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two arms.

    Attributes:
        number: The main number.
        main: Estimate of the main number's difference.
        pairing: `traces`, `questions` or `none`.
        left_out: Traces or questions of A and of B that have the main number but no partner.
        signal: Noise of the main number.
        drift: Drift attribution, if the arms are ranges of days with different recipes: all traces first, then by app
            and generator.
        labels: Outcomes of common claims; None without common claims.
        people: Comparison with people's labels; None if nobody reviewed a common claim.
        outcomes: For arms without common claims, claims of A and of B by outcome.
        patterns: Rows with `pattern`, `n_a`, `n_b` and `n_both` (None without common claims).
        flips: Flipped claims, each with the texts and explanations of both arms.
        cost: A row for each arm, with its name as `arm`.
    """

    kind: str
    baseline: ArmName
    candidate: ArmName
    filters: Filters
    number: str
    main: Estimate
    pairing: str
    left_out: tuple[int, int]
    estimates: tuple[Group, ...]
    signal: tuple[Noise, ...]
    by_app: tuple[Group, ...]
    by_generator: tuple[Group, ...]
    cost: tuple[Row, ...]
    notes: tuple[str, ...]
    drift: tuple[Drift, ...] = ()
    labels: Labels | None = None
    people: AgainstPeople | None = None
    outcomes: tuple[Mapping[str, int], Mapping[str, int]] | None = None
    patterns: tuple[Row, ...] = ()
    flips: tuple[Row, ...] = ()
