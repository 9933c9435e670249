"""The sentences and cells of a comparison, in the terminal and on its page."""

from typing import Any

import pytest

from tasks.analysis.compare.results import Noise
from tasks.publish.documents import document as doc
from tasks.publish.documents.comparison import deciding_sentence, signal_to_noise, summary
from tasks.stats.agreement import Interval
from tasks.stats.comparison import Estimate


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Groundedness, B − A: −5.0 [−8.0, −2.0], p < 0.001: significant."),
        ({"p": 0.05}, "Groundedness, B − A: −5.0 [−8.0, −2.0], p = 0.050: not significant."),
        ({"low": None, "high": None, "p": None}, "Groundedness, B − A: −5.0; too few questions for an interval."),
        ({"difference": None}, "No difference in groundedness is known: one arm has no score."),
    ],
)
def test_the_main_difference(changes: dict[str, Any], sentence: str) -> None:
    main = {"a": 50.0, "b": 45.0, "difference": -5.0, "low": -8.04, "high": -1.96, "p": 0.0004, **changes}
    assert summary("groundedness", Estimate(9, 9, 9, **main)) == sentence


def test_signal_to_noise_is_measured_never_measured_or_zero() -> None:
    def sentence(spread: float | None, ratio: float | None) -> str:
        return signal_to_noise(Noise("judge", spread, ratio, "nli: 500 requests judged again"), "groundedness")

    start, note = "Signal to noise, the same requests judged again: ", " nli: 500 requests judged again."
    assert sentence(0.5, 10.0) == f"{start}10.0 (identical runs differ by ± 0.50).{note}"
    assert sentence(None, None) == f"{start}n/a.{note}"
    assert sentence(0.0, None) == f"{start}identical runs do not differ.{note}"


def test_of_the_deciding_chunk_the_sentence_next_to_the_claim_is_quoted() -> None:
    chunk = "Documents open in the browser. Up to 20 people can edit one document together. Others wait."
    assert deciding_sentence(chunk, "Up to 50 people can edit a document") == (
        "Up to 20 people can edit one document together."
    )
    assert deciding_sentence(chunk, None) == chunk  # the claim's text was removed
    assert deciding_sentence(None, "A claim.") is None


def test_values() -> None:
    assert doc.signed(-0.1234, 3) == "−0.123"
    assert str(doc.difference(Interval(None), 1)) == "n/a"
    assert str(doc.difference(Interval(0.5), 2)) == "+0.50"
    assert str(doc.difference(Interval(0.1, -0.05, 0.25))) == "+0.100 [−0.050, +0.250]"
    assert str(doc.interval(Interval(-0.25))) == "-0.250"
    assert [doc.probability(p) for p in (None, 0.0, 0.0421, 1.0)] == ["n/a", "< 0.001", "0.042", "1.000"]


def test_a_bar_reaches_from_its_middle_to_both_ends() -> None:
    """Of a reach of 4, −1 to +2 is 37.5% to 75% of the bar, and +1 lies at 62.5%."""
    assert doc.difference(Interval(1.0, -1.0, 2.0), reach=4.0).bar == (37.5, 37.5, 62.5)
    assert doc.difference(Interval(1.0), reach=4.0).bar == (None, None, 62.5)


def test_only_outcomes_in_use_are_shown() -> None:
    """The second is in use since B gave it, the third by nobody."""
    table = doc.matrix("", ("supported", "unsupported", "na"), [[1, 2, 0], [0, 0, 0], [0, 0, 0]])
    assert table.columns == ("", "supported", "unsupported")
    assert [[str(cell) for cell in row] for row in table.rows] == [["supported", "1", "2"], ["unsupported", "0", "0"]]
