"""What the night page says of questions that were asked more than once, and of conversations."""

from pathlib import Path
from typing import Any

from kit.html_tree import parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, nightly

from tasks.publish.report.site import build


def lines(tmp_path: Path, *repeats: dict[str, Any]) -> list[str]:
    rows = by_hand()
    nightly(rows)
    of = {"recipe": RECIPE, "date": NIGHT, "judge_version": JUDGE, "app": "support", "generator": "g"}
    for row in repeats:
        rows.add("nightly_repeats", **{**of, **row})
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    found = parse(tmp_path / str(NIGHT) / "index.html").all("p", "repeats")
    return [" ".join(p.words().replace("\u202f", "").split()) for p in found]


def test_conversations_in_which_something_was_ungrounded(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows)
    of = {"recipe": RECIPE, "date": NIGHT, "judge_version": JUDGE, "app": "support"}
    share = {
        "ungrounded_share": 0.25,
        "ungrounded_share_low": 0.046,
        "ungrounded_share_high": 0.7,
        "misused_share": 0.0,
        "misused_share_low": 0.0,
        "misused_share_high": 0.6,
    }
    rows.add("nightly_sessions", **of, generator="g", n=5, n_scored=4, traces=1200, **share)
    rows.add("nightly_sessions", **of, generator="<h>", n=1, n_scored=0, traces=1)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    found = parse(tmp_path / str(NIGHT) / "index.html").all("p", "sessions")
    assert [" ".join(p.words().replace("\u202f", "").split()) for p in found] == [
        "<h> (support) had 1 conversation with 1 answer. None of them is scored.",
        "g (support) had 5 conversations with 1200 answers. Something was ungrounded in 25% [5, 70] of the 4 that are scored,"
        " and a citation misused in 0% [0, 60].",
    ]


def test_repeats_are_told_with_their_spread(tmp_path: Path) -> None:
    compared = {"questions": 9, "questions_repeated": 2, "n": 1005, "n_scored": 5, "questions_compared": 2}
    shown = lines(
        tmp_path,
        {
            "number": "groundedness",
            **compared,
            "mean": 72.5,
            "spread": 8.536,
            "spread_low": 1.04,
            "spread_high": 30.0,
            "range": 15.0,
            "share_repeats": 0.0785,
            "share_repeats_low": 0.012,
            "share_repeats_high": 0.6,
        },
        {"number": "faithfulness", **compared, "mean": 0.7, "spread": 0.08, "range": 0.15, "share_repeats": 0.5},
        {"number": "groundedness", "generator": "<b>h</b>", "questions": 3, "questions_repeated": 1, "n": 2},
        {"number": "groundedness", "generator": "never", "questions": 3},
    )
    assert shown == [
        "<b>h</b> (support) was asked 1 question more than once, 2 times in all."
        " Of none of them are two answers scored.",
        "g (support) was asked 2 questions more than once, 1005 times in all. Answers to the same question differ in"
        " groundedness by 8.5 [1.0, 30.0] (standard deviation; 15.0 from lowest to highest): 8% [1, 60] of its variance comes"
        " from repeats.",
    ]


def test_without_repeats_nothing_is_said(tmp_path: Path) -> None:
    assert lines(tmp_path) == []
