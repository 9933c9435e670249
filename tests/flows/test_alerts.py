"""Who is told of what, and when: places that fail, old alerts, ends of alerts; and that a URL shows nowhere."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.worlds import FIRST, make_world

from flows.alerts import notify_all
from flows.runtime import notify
from tasks.core.schemas import ALERTS
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.scoring.alerts import alerts, write

TODAY = FIRST + timedelta(days=3)


def alert(ctx: Context, **changes: Any) -> dict[str, Any]:
    """An alert that nobody has heard of."""
    blank = {f.name: 0 for f in ALERTS.schema if not f.nullable}
    row = {f.name: None for f in ALERTS.schema} | blank | {
        "alert_id": "0123456789abcdef", "recipe": ctx.recipe, "judge_version": "j", "date": FIRST, "since": FIRST,
        "app": "docs", "generator": "large", "number": "groundedness", "direction": "down", "baseline_mean": 80.0,
        "mean": 74.9, "change": -5.1, "change_low": -7.0, "change_high": -3.2, "nights": 2, "nights_before": 30,
        "worst_trace_ids": ["t1"], "status": "fired", "sent": [],
    }  # fmt: skip
    return {**row, **changes}


class Places:
    """What was sent to which place; some of them are down."""

    def __init__(self, *down: str) -> None:
        self.down = set(down)
        self.got: list[tuple[str, str, str]] = []

    def __call__(self, place: str, title: str, body: str) -> str | None:
        if place in self.down:
            return "the service did not take it, or could not be reached"
        self.got.append((place, title, body))
        return None


def announced(*_: object) -> None:
    """Prefect takes every alert."""


def prepared(
    tmp_path: Path,
    rows: Sequence[dict[str, Any]] = ({},),
    **settings: Any,
) -> Context:
    """A lake with these alerts, and a config that names two places."""
    world = make_world(tmp_path, alerts={"notify": ["env:A", "env:B"], **settings})
    ctx = build_context(world.config, TODAY, TODAY, today=TODAY)
    for row in rows:
        made = alert(ctx, **row)
        write(ctx, made["date"], [made])
    return ctx


def test_a_place_that_is_down_is_told_later_and_the_others_once(tmp_path: Path) -> None:
    places = Places("env:B")
    ctx = prepared(tmp_path)
    first = notify_all([ctx], announced, places)
    assert first is not None
    assert first.notes == (
        "1 alert could not be sent to env:B: the service did not take it, or could not be reached. The next run tries again.",
    )
    assert alerts(ctx)[0]["sent_at"] is None
    places.down.clear()
    second = notify_all([ctx], announced, places)
    assert second is not None
    assert second.notes == ()
    assert [p for p, *_ in places.got] == ["env:A", "env:B"]
    (row,) = alerts(ctx)
    assert row["sent_at"] is not None
    assert notify_all([ctx], announced, places) is None
    title = "Groundedness of docs · large fell by 5.1 (80.0 → 74.9)"
    assert places.got[0][1] == f"Leadline: {title}"
    assert "change -5.1, 95% interval -7.0 to -3.2: the last 2 nights" in places.got[0][2]
    assert "the judge's own noise in this number was not measured" in places.got[0][2]


def test_several_alerts_are_one_message(tmp_path: Path) -> None:
    places = Places()
    later = {"alert_id": "1" * 16, "date": FIRST + timedelta(days=1), "generator": "small", "number": "faithfulness"}
    ctx = prepared(tmp_path, [{}, {**later, "direction": "up", "change": 0.021, "noise_sd": 0.004}])
    notify_all([ctx], announced, places)
    (_, title, body), _ = places.got
    assert title.endswith(", and 1 alert more")
    assert "Faithfulness of docs · small rose by 0.021" in body
    assert "would move it by 0.004" in body


def test_old_alerts_are_kept_and_not_sent(tmp_path: Path) -> None:
    places = Places()
    ctx = prepared(tmp_path, notify_days=2)
    notify_all([ctx], announced, places)
    assert places.got == []
    assert (alerts(ctx)[0]["announced_at"] is not None, alerts(ctx)[0]["sent"]) == (True, [])
    assert notify_all([replace(ctx, today=FIRST + timedelta(days=2))], announced, places) is not None
    assert len(places.got) == 2


OVER = {"status": "recovered", "until": FIRST, "recovered_on": FIRST + timedelta(days=1)}


@pytest.mark.parametrize("recoveries", [False, True])
def test_the_end_is_sent_to_who_was_told_where_it_is_asked_for(tmp_path: Path, recoveries: bool) -> None:
    places = Places()
    told = [{"place": "env:A", "status": "fired", "at": datetime(2026, 11, 2, tzinfo=UTC)}]
    ctx = prepared(tmp_path, [{**OVER, "sent": told}], recoveries=recoveries)
    for _ in range(2):
        notify_all([ctx], announced, places)
    ended = [("env:A", "Leadline: Back to normal: Groundedness of docs · large fell by 5.1 (80.0 → 74.9)")]
    assert [(p, t) for p, t, _ in places.got] == (ended if recoveries else [])


def test_what_is_over_before_it_could_be_told_is_no_news(tmp_path: Path) -> None:
    places = Places()
    notify_all([prepared(tmp_path, [OVER], recoveries=True)], announced, places)
    assert places.got == []


def test_a_prefect_that_does_not_answer_is_noted_and_tried_again(tmp_path: Path) -> None:
    ctx = prepared(tmp_path, notify=[])

    def refuse(*_: object) -> None:
        raise ConnectionError("http://user:SECRET@host")

    result = notify_all([ctx], refuse, Places())
    assert result is not None
    assert result.notes == ("Prefect did not take alert 0123456789abcdef (ConnectionError); tried again next run.",)
    assert alerts(ctx)[0]["announced_at"] is None


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        ("", "the file is empty"),
        ("nosuchservice://SECRET", "URL 1 of 1 is of no service that Apprise knows"),
        ("json://127.0.0.1:9/SECRET", "the service did not take it, or could not be reached"),
    ],
)
def test_what_went_wrong_is_said_without_the_url(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], urls: str, message: str
) -> None:
    (tmp_path / "urls").write_text(urls)
    with caplog.at_level(logging.DEBUG):
        assert notify.send(f"file:{tmp_path / 'urls'}", "title", "body") == message
    assert "SECRET" not in caplog.text + str(capfd.readouterr())


def test_a_place_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_HOOK", raising=False)
    assert notify.send("env:NO_SUCH_HOOK", "t", "b") == "the variable is not set"
    assert notify.send(f"file:{tmp_path / 'none'}", "t", "b") == "the file can't be read (FileNotFoundError)"
