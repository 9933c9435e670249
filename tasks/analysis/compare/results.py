"""Results of `leadline compare` as plain data, for the terminal, JSON and a page. A: the baseline, B: the candidate."""

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
MAIN = ("groundedness", "citation_groundedness")  # the first that both arms have; noise is measured of these
OUTCOMES = ("supported", "partially_supported", "unsupported", "contradicted", "abstained", "unjudged", "na")
LABELS = OUTCOMES[:4]


@dataclass(frozen=True, slots=True)
class ArmName:
    """What an arm is, and the recipe and judge behind it; `first` and `last` are its days, None for all."""

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
    """A number of all (no name), or of one app or generator, by its name."""

    name: str
    number: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Noise:
    """How much identical runs differ, and the difference in units of it.

    Attributes:
        source: `judge`: the judge judged the same requests again. `repeats`: questions were repeated.
        spread: Standard deviation of the difference of two identical runs of this size; None where never measured.
        ratio: |difference| / spread; None where the spread is unknown or 0.
        note: What it was measured on, or how to measure it.
    """

    source: str
    spread: float | None
    ratio: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift attribution: the change between two ranges of days is the sum of the product's and the judge's.

    Attributes:
        name: The app or generator; empty for all.
        place: Where both recipes have scored the same traces: `before`, `after` or `elsewhere`.
        share: Share of that range's traces that both have scored; None elsewhere.
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
        matrix: `matrix[i][j]` claims that A gave `outcomes[i]` and B `outcomes[j]`.
        flipped: Claims that both labeled differently.
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
        n: Randomly sampled claims that both judges and people labeled.
        questions: Their different questions.
        picked: Claims left out since they were picked for review because of their labels.
        accuracy: Balanced accuracy of supported or not; partially supported is not.
        kappa: Cohen's kappa of the four labels.
    """

    n: int
    questions: int
    picked: int
    accuracy: Gain
    kappa: Gain


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the warehouse has on two arms.

    Attributes:
        number: The main number.
        main: Its estimate.
        pairing: `traces`, `questions` or `none`.
        left_out: Traces or questions of A and of B that have the main number and no partner.
        signal: Noise of the main number.
        drift: Of ranges of days that different recipes judged; all first, then by app and generator.
        labels: None where the arms have no claims in common.
        people: None where nobody reviewed a claim of both.
        outcomes: Of arms without common claims: claims of A and of B by outcome.
        patterns: Rows with `pattern`, `n_a`, `n_b` and `n_both` (None without common claims).
        flips: Claims that flipped, each with the texts and explanations of both.
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
