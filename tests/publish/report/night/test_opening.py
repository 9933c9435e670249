"""What a night opens with: changes, traces to read, answers to label, refused rows, and what no alert watches."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit.html_tree import parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, nightly

from tasks.core.config import Alerts
from tasks.publish.report.night.gather import METRICS
from tasks.publish.report.night.opening import in_words, opening
from tasks.publish.report.night.trust import trust
from tasks.publish.report.site import build

WATCH = Alerts(least_traces=20, least_nights=14)
ALERT = {
    "app": "docs", "generator": "large", "number": "groundedness", "direction": "down", "change": -5.06,
    "baseline_mean": 80.0, "mean": 74.94, "layer": "retrieval", "fired": True, "worst_trace_ids": ["w1", "w2", "w3", "w4"],
}  # fmt: skip
LABELS = {
    "app": "docs", "n_labels": 40, "n_questions": 20, "accuracy": 0.7, "accuracy_low": 0.55, "accuracy_high": 0.85,
    "kappa": 0.4, "kappa_low": 0.2, "kappa_high": 0.6, "n_to_check": 0, "n_claims": 0, "n_unsure": 0, "n_unread": 0, "noise": None,
}  # fmt: skip


def group(app: str, generator: str, scored: int) -> dict[str, Any]:
    return {"app": app, "generator": generator, "metrics": {"groundedness": {"n_scored": scored}}}


def page(**changes: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"alerts": [], "to_read": [], "quarantine": [], "history": [], "groups": []}
    return {"metrics": METRICS["claims"], **empty, **changes}


def lines(of: dict[str, Any], trusted: Any = (), changed: Any = (), watch: Alerts = WATCH) -> dict[str, str]:
    return {line["about"]: in_words(line) for line in opening(of, trusted, changed, watch)}


def test_a_quiet_night_has_one_line() -> None:
    assert lines(page()) == {"changed": "no watched number, prompt, retriever, generator or judge"}


def test_changes_of_numbers_come_before_their_causes() -> None:
    back = {**ALERT, "fired": False, "direction": "up", "change": 5.06, "baseline_mean": 74.94, "mean": 80.0}
    found = lines(page(alerts=[ALERT, back]), changed=["prompt of large v5 (before: v4)"])
    assert found["changed"] == (
        "Groundedness of docs · large fell by 5.1 (80.0 → 74.9), likely layer retrieval; "
        "back to normal: Groundedness of docs · large rose by 5.1 (74.9 → 80.0); prompt of large v5 (before: v4)"
    )
    six = lines(page(), changed=[f"cause {n}" for n in range(6)])
    assert six["changed"] == "cause 0; cause 1; cause 2; cause 3; 2 more"


def test_traces_of_changes_are_read_first_then_those_with_most_evidence() -> None:
    row = {"claims_to_check": 0, "claims_contradicted": 0, "claims_misused": 0, "score": 12.34}
    rows = [
        {**row, "trace_id": "w1", "claims_misused": 4},
        {**row, "trace_id": "t1", "claims_to_check": 1, "claims_misused": 2},
        {**row, "trace_id": "t2"},
        {**row, "trace_id": "t3"},
    ]
    named = "named by a change"
    (_, read) = opening(page(alerts=[ALERT], to_read=rows), (), (), WATCH)
    assert read["traces"] == [
        ("w1", named),
        ("w2", named),
        ("w3", named),
        ("t1", "1 to check, 2 misused"),
        ("t2", "groundedness 12.3"),
    ]


def test_labels_are_wanted_until_the_accuracy_is_known() -> None:
    # Intervals are as wide as 1 / √n: from ± 0.15 on 20 questions to ± 0.05 takes 180, which are 160 more.
    wide, narrow = trust(LABELS), trust({**LABELS, "app": "b", "accuracy_low": 0.66, "accuracy_high": 0.74})
    never = trust({**LABELS, "app": "new", "n_labels": 0, "accuracy": None, "accuracy_low": None})
    (_, label) = opening(page(), [wide, narrow, never], (), WATCH)
    assert label["text"] == (
        "160 more of docs (its judge's accuracy is 0.70 [0.55, 0.85]; for ± 0.05); "
        "30 answers of new (its judge was never checked)"
    )
    assert label["command"] == "leadline review export --app docs --need random --count 30"


def test_refused_rows_are_counted_by_reason() -> None:
    refused = [{"stage": "parse", "reason": "malformed_json", "n": 4}, {"stage": "gate", "reason": "no_answer", "n": 1}]
    assert lines(page(quarantine=refused))["refused"] == "5 rows: malformed_json 4; no_answer 1"


def test_what_no_alert_watches_is_named_with_what_it_lacks() -> None:
    # 14 nights to compare with, and tonight: 15. A night of 19 scored traces is none of them.
    groups = [group("hr", "gpt", 19), group("docs", "large", 40), group("docs", "small", 40)]
    nights = [("large", 40)] * 15 + [("small", 40)] * 14 + [("small", 19)] * 5
    history = [{"app": "docs", "generator": generator, "n_scored": n} for generator, n in nights]
    assert lines(page(groups=groups, history=history))["not watched"] == (
        "alerts need 20 scored traces: hr · gpt has 19; alerts need 15 nights with 20 scored traces: docs · small has 14"
    )
    nothing = lines(page(groups=groups, history=history), watch=Alerts(numbers=()))
    assert nothing["not watched"] == "all numbers: alerts.numbers is empty in the config"


@pytest.fixture
def night(tmp_path: Path) -> Path:
    rows = by_hand()
    nightly(rows)
    rows.add("nightly_trust", recipe=RECIPE, date=NIGHT, judge_version=JUDGE, app="support")
    rows.add("quarantine", date=NIGHT, source="a.jsonl", line=7, stage="parse", reason="malformed_json")
    rows.add("alerts", recipe=RECIPE, judge_version=JUDGE, date=NIGHT, status="fired", **{
        **{name: value for name, value in ALERT.items() if name != "fired"}, "worst_trace_ids": ["<b>gone</b>"],
    })  # fmt: skip
    return build(rows.reader(), tmp_path, NIGHT, RECIPE, 50).parent


def test_the_page_and_the_list_of_nights_have_the_same_lines(night: Path) -> None:
    section = parse(night / "index.html").one(id_="opening")
    kept = json.loads((night / "night.json").read_text())["opening"]
    assert [dt.words().lower() for dt in section.all("dt")] == [line["about"] for line in kept]
    assert [line["about"] for line in kept] == ["changed", "read", "label", "refused", "not watched"]
    for line, shown in zip(kept, section.all("dd"), strict=True):
        assert line["text"] in shown.words()
        assert all(why in shown.words() for _, why in line["traces"])
    assert "<b>gone</b>" in section.words()  # an id that a log has made up is shown as it is


def test_every_trace_to_read_leads_to_its_page_if_it_has_one(night: Path) -> None:
    section = parse(night / "index.html").one(id_="opening")
    kept = json.loads((night / "night.json").read_text())["opening"]
    (read,) = [line["traces"] for line in kept if line["about"] == "read"]
    links = [link for link in section.links() if link.startswith("traces/")]
    assert len(links) == len(read) - 1 > 0  # all but the one that is gone
    assert all((night / link).is_file() for link in links)


def test_only_one_trace_of_each_question_is_read(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows)
    for row in rows.tables["trace_scores"]:
        row["question_id"] = "the same"
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 50)
    kept = json.loads((tmp_path / str(NIGHT) / "night.json").read_text())["opening"]
    (read,) = [line["traces"] for line in kept if line["about"] == "read"]
    generators = {(r["app"], r["generator"]) for r in rows.tables["trace_scores"] if r["claims_judged"]}
    assert len(read) == len(generators)
