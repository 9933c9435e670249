"""How far a judge agrees with people on an app's claims, of how many labels, and how often it is unsure itself."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl
import pytest

from tasks.scoring.trust import trust

SCORES = pl.DataFrame([
    {"trace_id": f"t{i}", "app": app, "recipe": "r", "date": date(2026, 11, 1), "judge_version": "j"}
    for i, app in enumerate(["docs", "docs", "shop"])
])  # fmt: skip
RESULTS = pl.DataFrame(
    [("t0", 0.59, None), ("t0", 0.6, None), ("t1", None, "language"), ("t2", 0.9, None), ("t2", None, "judge")],
    schema={"trace_id": pl.String, "confidence": pl.Float64, "abstained_for": pl.String},
    orient="row",
)
REVIEWED = {"app": pl.String, "question": pl.String, "random": pl.Boolean, "judge": pl.String, "people": pl.String}


def rows(
    *reviewed: tuple[str, str, bool, str | None, str | None], marked: Sequence[bool] = ()
) -> dict[str, dict[str, Any]]:
    labeled = pl.DataFrame(reviewed, schema=REVIEWED, orient="row")
    to_check = pl.Series("to_check", marked or [False] * len(reviewed), pl.Boolean)
    found = trust(SCORES, RESULTS, labeled.with_columns(to_check))
    return {row["app"]: row for row in found.to_pylist()}


def test_without_labels_nothing_is_known() -> None:
    found = rows()
    assert list(found) == ["docs", "shop"]
    for row in found.values():
        assert (row["n_labels"], row["n_questions"], row["accuracy"], row["kappa"]) == (0, 0, None, None)


def test_a_confidence_below_six_tenths_is_unsure_and_none_is_not_counted() -> None:
    found = rows()
    assert [found["docs"][n] for n in ("n_claims", "n_unsure", "n_unread")] == [2, 1, 1]
    assert [found["shop"][n] for n in ("n_claims", "n_unsure", "n_unread")] == [1, 0, 0]


def test_accuracy_and_kappa_of_supported_against_the_rest() -> None:
    """Of docs, people: 4 supported, of which the judge keeps 3; 2 not, of which it catches 1: (3/4 + 1/2) / 2 = 0.625.

    Equal labels 4/6; by chance 4/6 · 4/6 + 2/6 · 2/6 = 5/9: kappa (2/3 − 5/9) / (4/9) = 0.25. A contradicted claim and
    an unsupported one are on the same side.
    """
    labels = [
        ("q1", "supported", "supported"),
        ("q1", "supported", "supported"),
        ("q2", "supported", "supported"),
        ("q3", "unsupported", "supported"),
        ("q4", "contradicted", "unsupported"),
        ("q5", "supported", "partially_supported"),
    ]
    found = rows(*(("docs", q, True, judge, people) for q, judge, people in labels))
    row = found["docs"]
    assert (row["n_labels"], row["n_questions"]) == (6, 5)
    assert row["accuracy"] == pytest.approx(0.625)
    assert row["kappa"] == pytest.approx(0.25)
    assert row["accuracy_low"] < 0.625 < row["accuracy_high"]
    assert found["shop"]["n_labels"] == 0


def test_picked_claims_and_those_without_both_labels_are_left_out() -> None:
    found = rows(
        ("docs", "q", False, "supported", "unsupported"),
        ("docs", "q", True, None, "unsupported"),
        ("docs", "q", True, "supported", None),
        ("docs", "q", True, "supported", "supported"),
    )
    assert (found["docs"]["n_labels"], found["docs"]["accuracy"]) == (1, None)  # people gave one side only


def test_people_check_supported_claims_with_and_without_a_pattern() -> None:
    """With one: of 3, a person calls one unsupported and one partly supported, 2/3. Without: of 2, none is wrong.

    The third column is no label of a random draw, and the judge itself does not support the last claim.
    """
    labels = [
        ("docs", "q1", True, "supported", "unsupported"),
        ("docs", "q1", True, "supported", "supported"),
        ("docs", "q2", True, "supported", "partially_supported"),
        ("docs", "q3", True, "supported", "supported"),
        ("docs", "q4", True, "supported", "supported"),
        ("docs", "q4", False, "supported", "unsupported"),
        ("docs", "q5", True, "unsupported", "unsupported"),
    ]
    found = rows(*labels, marked=[True, True, True, False, False, True, False])
    row = found["docs"]
    assert (row["n_to_check"], row["n_to_check_wrong"], row["n_unmarked"], row["n_unmarked_wrong"]) == (3, 2, 2, 0)
    assert row["to_check_wrong_share"] == pytest.approx(2 / 3)
    assert row["to_check_wrong_share_low"] < 2 / 3 < row["to_check_wrong_share_high"]
    assert row["unmarked_wrong_share"] == row["unmarked_wrong_share_low"] == 0 < row["unmarked_wrong_share_high"]
    assert (found["shop"]["n_to_check"], found["shop"]["to_check_wrong_share"]) == (0, None)


def test_one_question_gives_no_interval() -> None:
    row = rows(("docs", "q", True, "supported", "unsupported"), marked=[True])["docs"]
    assert (row["to_check_wrong_share"], row["to_check_wrong_share_low"]) == (1, None)
