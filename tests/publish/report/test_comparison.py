"""The words in which a comparison is told, in the terminal and on its page."""

from typing import Any

import pytest

from tasks.publish.report.comparison import (
    difference,
    gained,
    probability,
    reviewed,
    signal,
    signed,
    used,
    verdict,
    within,
)


def main(**changes: Any) -> dict[str, Any]:
    estimate = {"a": 50.0, "b": 45.0, "difference": -5.0, "low": -8.04, "high": -1.96, "p": 0.0004}
    return {"number": "groundedness", "main": {**estimate, **changes}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Groundedness, B − A: −5.0 [−8.0, −2.0], p < 0.001: the two are told apart."),
        ({"p": 0.05}, "Groundedness, B − A: −5.0 [−8.0, −2.0], p = 0.050: the two are not told apart."),
        ({"low": None, "high": None, "p": None}, "Groundedness, B − A: −5.0; too few questions for an interval."),
        ({"difference": None}, "No difference in groundedness can be told: one side has no score."),
    ],
)
def test_the_main_difference(changes: dict[str, Any], said: str) -> None:
    assert verdict(main(**changes)) == said


def test_signal_to_noise_is_told_measured_never_measured_and_zero() -> None:
    known = {"source": "judge", "spread": 0.5, "ratio": 10.0, "note": "nli: 500 requests judged again"}
    told = "Signal to noise, the judge asked again: 10.0 (identical runs differ by ± 0.50). nli: 500 requests judged again."
    assert signal(known, "groundedness") == told
    assert ": n/a. " in signal({**known, "spread": None, "ratio": None}, "groundedness")
    assert "identical runs do not differ" in signal({**known, "spread": 0.0, "ratio": None}, "groundedness")


def test_numbers() -> None:
    assert signed(-0.1234, 3) == "−0.123"
    assert signed(None, 1) == "n/a"
    assert difference({"difference": 0.5, "low": None, "high": None}, 2) == "+0.50"
    assert [probability(p) for p in (None, 0.0, 0.0421, 1.0)] == ["n/a", "< 0.001", "0.042", "1.000"]


def test_two_judges_against_people_in_words() -> None:
    kappa = {"value": -0.25, "low": None, "high": None}
    assert (within(kappa), gained(kappa)) == ("-0.250", "−0.250")
    assert gained({"value": 0.1, "low": -0.05, "high": 0.25}) == "+0.100 [−0.050, +0.250]"
    of = {"n": 1200, "questions": 1, "picked": 0}
    assert reviewed(of) == "Against people, on 1\u202f200 claims of 1 question"
    assert reviewed({**of, "picked": 3}).endswith("; left out, since picked for their labels: 3")


def test_only_outcomes_in_use_are_shown() -> None:
    """The second is in use since B gave it, the third by nobody."""
    assert used([[1, 2, 0], [0, 0, 0], [0, 0, 0]]) == [0, 1]
