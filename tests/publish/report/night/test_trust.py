"""How far to trust the numbers: on the night's page, on each trace's, and in words that fit what is known."""

from pathlib import Path
from typing import Any

import pytest
from kit.html_tree import parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, nightly

from tasks.publish.report.night.trust import trust
from tasks.publish.report.site import build

ROW = {
    "app": "support", "n_labels": 0, "n_questions": 0, "accuracy": None, "accuracy_low": None, "accuracy_high": None,
    "kappa": None, "kappa_low": None, "kappa_high": None, "n_claims": 40, "n_unsure": 10, "n_unread": 0, "noise": None,
    "noise_n": None, "n_to_check": 0, "n_unmarked": 0,
}  # fmt: skip
NUMBERS = {
    "accuracy": 0.8,
    "accuracy_low": 0.72,
    "accuracy_high": 0.88,
    "kappa": 0.6,
    "kappa_low": 0.5,
    "kappa_high": 0.7,
}
LABELED = {**ROW, "n_labels": 120, "n_questions": 60, **NUMBERS}
UNSURE = "It is unsure of 25% of the night's {} claims: it gives its own label a probability below 0.6."
EXPORT = "leadline review export --app support --need random --count 30"


def test_without_labels_it_was_never_checked() -> None:
    found = trust(ROW)
    assert (found.state, found.command) == ("unchecked", EXPORT)
    assert found.agreement == "Never checked on this application's traces. Label 30 answers:"
    assert found.rest[0] == UNSURE.format(40)


def test_with_a_narrow_interval_it_was_checked() -> None:
    found = trust({**LABELED, "noise": 0.97, "noise_n": 200, "n_unread": 3})
    assert (found.state, found.command) == ("checked", None)
    assert found.agreement == (
        "On 120 claims of 60 questions that people labeled, its balanced accuracy is 0.80 [0.72, 0.88], where guessing"
        " has 0.5, and its kappa 0.60 [0.50, 0.70]."
    )
    assert found.rest[1:] == (
        "It does not read the language of 3 claims.",
        "Asked again, it gives the same label to 97% of 200 requests.",
    )


@pytest.mark.parametrize("known", [{"accuracy_low": 0.6}, {"accuracy_low": None, "accuracy_high": None}])
def test_few_labels_ask_for_more(known: dict[str, Any]) -> None:
    found = trust({**LABELED, **known}, " -c 'my config.yaml'")
    assert found.state == "few"
    assert found.agreement.endswith("That is uncertain. Label 30 more answers:")
    assert found.command == EXPORT.replace("export", "export -c 'my config.yaml'")


def test_labels_of_one_side_give_no_accuracy() -> None:
    found = trust({**ROW, "n_labels": 12, "n_questions": 1})
    assert (found.state, found.command) == ("few", EXPORT)
    assert found.agreement == (
        "On 12 claims of 1 question that people labeled, all are supported or none is: that gives no accuracy. Label 30"
        " more answers:"
    )


def test_people_s_labels_of_claims_with_and_without_a_pattern() -> None:
    ends = {"to_check_wrong_share": 0.5, "to_check_wrong_share_low": 0.25, "to_check_wrong_share_high": 0.75}
    row = {**LABELED, "n_to_check": 8, "n_to_check_wrong": 4, **ends}
    start = (
        "Of the claims that the judge supports and that people labeled, people disagree on 4 of 8 with a pattern"
        " (0.50 [0.25, 0.75])"
    )
    assert trust(row).patterns == f"{start}."
    rest = {"unmarked_wrong_share": 0.1, "unmarked_wrong_share_low": None, "unmarked_wrong_share_high": None}
    assert trust({**row, "n_unmarked": 10, "n_unmarked_wrong": 1, **rest}).patterns == (
        f"{start}, and on 1 of 10 without one (0.10)."
    )
    assert trust({**LABELED, "n_unmarked": 10, "n_unmarked_wrong": 1, **rest}).patterns == ""


def test_the_name_of_an_app_is_quoted_for_a_shell() -> None:
    assert "--app 'my app; rm' " in (trust({**ROW, "app": "my app; rm"}).command or "")


def test_it_stands_on_the_night_and_on_each_trace(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows)
    rows.add("nightly_trust", recipe=RECIPE, date=NIGHT, judge_version=JUDGE, app="<b>support")
    rows.add("nightly_trust", recipe=RECIPE, date=NIGHT, judge_version=JUDGE, app="support", n_claims=4, n_unsure=1)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 50)
    page = parse(tmp_path / str(NIGHT) / "index.html")
    shown = [" ".join(p.words().split()) for p in page.all("p", "trust")]
    assert shown[1] == (
        f"support: Never checked on this application's traces. Label 30 answers: {EXPORT}."
        f" {UNSURE.format(4)} Its noise is not measured (leadline noise)."
    )
    assert shown[0].startswith("<b>support: Never checked")
    traces = list((tmp_path / str(NIGHT) / "traces").glob("*.html"))
    assert traces
    lines = [" ".join(p.words().split()) for t in traces for p in parse(t).all("p", "trust")]
    assert len(lines) == sum(row["app"] == "support" for row in rows.tables["trace_scores"])
    assert all(line.endswith("Never checked on this application’s traces: how far to trust it.") for line in lines)


def test_without_a_row_nothing_stands_there(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 5)
    assert parse(tmp_path / str(NIGHT) / "index.html").all("p", "trust") == []
