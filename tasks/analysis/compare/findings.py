"""What `leadline compare` finds out about two sides, as plain data: for the terminal, as JSON, and for a page.

Left out: how it is found out (`compare.py`).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.analysis.compare.selectors import Filters, Row, Side
from tasks.stats.agreement import Agreement
from tasks.stats.comparison import Estimate
from tasks.stats.gains import Gain

NUMBERS = (
    "groundedness", "faithfulness", "utilization", "context_relevance", "answer_relevance", "answerability",
    "citation_groundedness",
)  # fmt: skip
MAIN = ("groundedness", "citation_groundedness")  # whichever both sides have; noise is measured of these
OUTCOMES = ("supported", "partially_supported", "unsupported", "contradicted", "abstained", "unjudged", "na")
JUDGED = OUTCOMES[:4]


@dataclass(frozen=True, slots=True)
class Group:
    """A number of one app or generator; of both, by name."""

    name: str
    number: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Noise:
    """How much identical runs differ, and the difference in units of it.

    Attributes:
        source: `judge`: the same judge asked again. `repeats`: the same question asked again.
        spread: Standard deviation of the difference of two identical runs of this size; None where never measured.
        ratio: |difference| / spread; None where the spread is unknown or 0.
        note: What it was measured on, or how to measure it.
    """

    source: str
    spread: float | None
    ratio: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Shift:
    """A change between two ranges of days in two: the product's and the measurement's. Their sum is the total change.

    Attributes:
        name: The app or generator; empty for all.
        place: Where both recipes have scored the same traces: `before`, `after` or `elsewhere`.
        share: Of the traces of that range that have the number, the share that both have; None elsewhere.
    """

    name: str
    total: Estimate
    product: Estimate
    judge: Estimate
    place: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Labels:
    """Outcomes of the same claims under both sides.

    Attributes:
        matrix: `matrix[i][j]` claims that A gave `outcomes[i]` and B `outcomes[j]`.
        flipped: Claims that both gave a label, another one each.
    """

    outcomes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    agreement: Agreement
    flipped: int
    groups: tuple[tuple[str, str, Agreement], ...]


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """Two judges held against people's labels of the same claims.

    Attributes:
        n: Claims that both judges and people labelled, and that were drawn at random.
        questions: Their different questions.
        picked: Claims left out since they were picked for review because of their labels.
        accuracy: Balanced accuracy of "supported or not"; in part is not.
        kappa: Cohen's kappa of the four labels.
    """

    n: int
    questions: int
    picked: int
    accuracy: Gain
    kappa: Gain


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is known of two sides.

    Attributes:
        pairing: `traces`, `questions` or `none`.
        left_out: Of A and of B, traces (or questions) that have the main number and no partner.
        signal: Noise of the main number; empty where there is no difference to hold against it.
        shifts: Of ranges of days that were judged by different recipes; all first, then by app and generator.
        labels: None where the sides have no claims in common.
        people: Both held against people; None where nobody reviewed a claim of both.
        outcomes: Of sides without common claims: their claims by outcome, of A and of B.
        patterns: Rows with `pattern`, `n_a`, `n_b` and `n_both` (None without common claims).
        flips: Claims that flipped, each with the texts and explanations of both.
        cost: Rows with `side` and what it took.
    """

    kind: str
    a: Side
    b: Side
    filters: Filters
    number: str
    pairing: str
    left_out: tuple[int, int]
    estimates: tuple[Group, ...]
    signal: tuple[Noise, ...]
    by_app: tuple[Group, ...]
    by_generator: tuple[Group, ...]
    shifts: tuple[Shift, ...] = ()
    labels: Labels | None = None
    people: AgainstPeople | None = None
    outcomes: tuple[Mapping[str, int], Mapping[str, int]] | None = None
    patterns: tuple[Row, ...] = ()
    flips: tuple[Row, ...] = ()
    cost: tuple[Row, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def main(self) -> Estimate:
        """The number that is looked at closely."""
        return next((g.estimate for g in self.estimates if g.number == self.number), Estimate(0, 0, 0))

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: the sides with what names them, the main number's estimate as `main`, and all outcomes."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values = {name: plain(value) for name, value in found.items()}
        return {**values, "main": plain(self.main), "outcome_order": list(OUTCOMES)}


def plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """A finding as dictionaries, lists and values; a side with what names it."""
    if isinstance(value, Side):
        known = ("recipe", "recipe_name", "judge_name", "judge_version")
        named = {"kind": value.kind, "value": value.value, "name": value.name}
        return {**named, "first": value.first, "last": value.last, **{k: value.recipe[k] for k in known}}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value
