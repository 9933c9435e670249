"""The waterfall on the pages: where the answers of a night stop, and where one trace does and by which number."""

from pathlib import Path

import pytest
from kit.html_tree import Node, parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, Rows

from tasks.publish.report.night.waterfall import digits
from tasks.publish.report.site import build
from tasks.publish.report.text import slug

STAGES = ("retrieval", "answerability", "faithfulness", "answer_relevance", "sent")
PASSES = '{"waterfall": {"retrieval": 0.34, "answerability": 0.0, "faithfulness": 0.5, "answer_relevance": 0.4213}}'


def night_of(rows: Rows, generator: str, **stages: dict) -> None:
    """Rows of one generator: `{stage: columns}`, of 10 traces; stages that are left out stop nobody."""
    reached = 10
    for position, stage in enumerate(STAGES, 1):
        given = {"n_stopped": 0, "n_uncertain": 0, "n_reviewed": 0, "n_wrong": 0, **stages.get(stage, {})}
        share = given["n_stopped"] / 10
        rows.add(
            "nightly_waterfall", recipe=RECIPE, date=NIGHT, app="support", generator=generator, judge_version=JUDGE,
            position=position, stage=stage, n=10, n_reached=reached, share=share,
            **{"share_low": share / 2, "share_high": (1 + share) / 2, **given},
        )  # fmt: skip
        reached -= given["n_stopped"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = by_hand()
    rows.tables["recipes"][0]["definition"] = PASSES
    night_of(
        rows, "atlas-70b", retrieval={"n_stopped": 1, "n_reviewed": 1},
        faithfulness={"n_stopped": 3, "n_uncertain": 2, "n_reviewed": 3, "n_wrong": 2},
        sent={"n_stopped": 6, "n_reviewed": 4, "n_wrong": 1, "wrong_share": 0.25, "wrong_low": 0.05, "wrong_high": 0.7},
    )  # fmt: skip
    night_of(rows, "meridian-8b", sent={"n_stopped": 10, "share_low": None, "share_high": None})  # one question
    met = {
        "kinds": {"waterfall": "faithfulness", "waterfall_uncertain": False, "answerability": 0.8, "weakest_support": 0.02},
        "bare": {"waterfall": "retrieval", "waterfall_uncertain": True},
        "lost": {"waterfall": "sent", "waterfall_uncertain": False, "answerability": 0.8, "weakest_support": 0.9},
    }  # fmt: skip
    for row in rows.tables["trace_scores"]:
        row.update(met.get(row["trace_id"], {}))
    out = tmp_path_factory.mktemp("waterfall")
    build(rows.reader(), out, NIGHT, RECIPE, 100)
    return out


def plain(text: str) -> str:
    return text.replace("\u202f", "").replace("\u00a0", " ")


def section(site: Path) -> Node:
    return parse(site / "2026-11-19" / "index.html").one(id_="waterfall")


def aside(site: Path, trace_id: str) -> Node:
    return parse(site / "2026-11-19" / "traces" / f"{slug(trace_id)}.html").one("aside")


def test_the_night_says_where_answers_stop_and_how_many_are_wrong(site: Path) -> None:
    table = section(site).one("table")
    atlas, meridian = ([plain(c.words()) for c in table.all("tr")[i].all("td")] for i in (2, 4))
    assert atlas == [
        "1 10%", "0 0%", "3 30% 2 uncertain", "0 0%", "6 60% [30, 80]",
        "25% [5, 70] 1 of 4 reviewed",
        "50% 2 of 4 reviewed",  # of all stages together: 0 of 1, and 2 of 3
    ]  # fmt: skip
    # nobody read an answer of the other generator: that none is wrong is not known
    assert meridian[4:] == ["10 100%", "n/a 0 of 0 reviewed", "n/a 0 of 0 reviewed"]


def test_the_bar_says_the_same_in_words(site: Path) -> None:
    first, second = (d.attrs["aria-label"] for d in section(site).all("div", "stack"))
    assert first == "Where the answers of support, atlas-70b, stop: 1 retrieval, 3 faithfulness and 6 would pass."
    assert second == "Where the answers of support, meridian-8b, stop: 10 would pass."


def test_the_thresholds_are_reported(site: Path) -> None:
    note = section(site).one("p", "note").words()
    assert (
        "Each is passed from retrieval 0.34, answerability 0.00, faithfulness 0.50, answer relevance 0.4213 on." in note
    )


@pytest.mark.parametrize(
    ("trace_id", "head", "met"),
    [
        ("kinds", "stopped at faithfulness", ["Retrieval passed best chunk 0.71 0.34", "Answerability passed 0.80 0.00", "Faithfulness stopped weakest claim 0.02 0.50", "Answer relevance not reached 0.6600 0.4213"]),
        ("bare", "stopped at retrieval", ["Retrieval missing best chunk n/a 0.34", "Answerability not reached n/a 0.00", "Faithfulness not reached weakest claim n/a 0.50", "Answer relevance not reached 0.6600 0.4213"]),
        ("lost", "would pass", ["Retrieval passed best chunk 0.71 0.34", "Answerability passed 0.80 0.00", "Faithfulness passed weakest claim 0.90 0.50", "Answer relevance passed 0.6600 0.4213"]),
    ],
)  # fmt: skip
def test_a_trace_says_where_it_stopped_by_which_number_and_threshold(
    site: Path, trace_id: str, head: str, met: list[str]
) -> None:
    found = aside(site, trace_id)
    assert f"Waterfall: {head}" in [h.words() for h in found.all("h2")]
    items = [li.words() for li in found.all("ol", "triad")[-1].all("li")]
    assert [i.replace(" passes from", "") for i in items] == met


DEFAULT = PASSES.replace("0.4213", "0.42")


@pytest.mark.parametrize(("passes", "calibrated"), [(PASSES, True), (DEFAULT, False), ("{}", False)])
def test_thresholds_that_nothing_was_measured_for_are_marked(tmp_path: Path, passes: str, calibrated: bool) -> None:
    rows = by_hand()
    rows.tables["recipes"][0]["definition"] = passes
    night_of(rows, "atlas-70b", sent={"n_stopped": 10})
    for row in rows.tables["trace_scores"]:
        row.update({"waterfall": "sent", "waterfall_uncertain": False})
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    night = section(tmp_path).words()
    assert ("(not calibrated)" not in night) == ("before leadline calibrate" not in night) == calibrated
    (head,) = [h.words() for h in aside(tmp_path, "lost").all("h2") if "Waterfall" in h.words()]
    assert head == ("Waterfall: would pass" if calibrated else "Waterfall: would pass not calibrated")


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.5, 2), (0.34, 2), (0, 2), (0.437, 3), (0.8441, 4), (0.84412, 4), (None, 2)]
)
def test_a_threshold_is_shown_as_it_was_given(threshold: float | None, expected: int) -> None:
    """With two digits a trace at 0.8437 would stop at "0.84, passes from 0.84"; calibrated thresholds have four."""
    assert digits(threshold) == expected


def test_scores_from_before_there_was_a_waterfall_show_none(site: Path, tmp_path: Path) -> None:
    assert not [h for h in aside(site, "silent").all("h2") if "Waterfall" in h.words()]
    build(by_hand().reader(), tmp_path, NIGHT, RECIPE, 1)
    assert "No waterfall for this night." in section(tmp_path).words()
