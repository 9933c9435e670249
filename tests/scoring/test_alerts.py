"""Alerts from nightly tables: each fires once, with its end; a repeated or late night fires nothing twice."""

import zlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.stage_kit import DAY, context, rows

from tasks.core.config import Alerts
from tasks.core.errors import ConfigError
from tasks.core.schemas import (
    ALERTS,
    GRADES,
    JUDGE_NOISE,
    NIGHTLY_GRADES,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_RELEVANCE,
    NIGHTLY_TRIAD,
    TRACE_SCORES,
    Table,
)
from tasks.run.context import Context
from tasks.scoring.alerts import alerts, alerts_on, find_alerts, write
from tasks.store.lake import from_rows

TRACES, HALF = 200, 4.2  # a night of 200 traces that spread by 30: 1.96 · 30 / √200
NIGHTS = 20  # before the change
FELL = DAY + timedelta(days=NIGHTS)


def over(ctx: Context, first: date, last: date | None = None) -> Context:
    """The context of a run over other days."""
    return replace(ctx, first=first, last=last or first)


def blank(table: Table) -> dict[str, Any]:
    return {f.name: 0 for f in table.schema if not f.nullable}


def put_night(
    ctx: Context,
    day: date,
    means: dict[str, float],
    failed: dict[str, int] | None = None,
    n: int = TRACES,
    aside: float = 0,
) -> None:
    """One night's tables as the stages before leave them: groundedness by generator, and how many of 100 diagnosed
    traces the generator failed (20, by default). The middle of an interval lies so far `aside` of the mean."""
    key = {"recipe": ctx.recipe, "date": day, "app": "shop", "judge_version": ctx.judge_version}
    counts = {"n": n, "n_scored": n, "n_na": 0, "n_unjudged": 0, "n_abstained": 0}
    grounded, relevant, triad = [], [], []
    for generator, mean in means.items():
        of = {**key, "generator": generator}
        middle = mean + aside
        ends = {"groundedness_mean": mean, "groundedness_low": middle - HALF, "groundedness_high": middle + HALF}
        grounded.append({**blank(NIGHTLY_GROUNDEDNESS), **of, **counts, **ends})
        relevant.append({**blank(NIGHTLY_RELEVANCE), **of, **counts, "kind": "answer", "relevance_mean": 0.7, "relevance_low": 0.68, "relevance_high": 0.72})  # fmt: skip
        bad = (failed or {}).get(generator, 20)
        triad += [{**of, "diagnosis": d, "n": c} for d, c in (("generator", bad), ("healthy", 100 - bad))]
    for table, found in ((NIGHTLY_GROUNDEDNESS, grounded), (NIGHTLY_RELEVANCE, relevant), (NIGHTLY_TRIAD, triad)):
        ctx.lake.write(table, "night", from_rows(found, table), ctx.recipe, str(day), inputs=str(mean))


def usual(day: date, generator: str) -> float:
    """A quiet night's mean: 80, and what sampling adds to it."""
    rng = np.random.default_rng(zlib.crc32(f"{day}{generator}".encode()))
    return 80 + 30 / TRACES**0.5 * float(rng.standard_normal())


def history(ctx: Context, nights: int = NIGHTS) -> None:
    for day in (DAY + timedelta(days=n) for n in range(nights)):
        put_night(ctx, day, {g: usual(day, g) for g in ("large", "small")})


def fallen(ctx: Context, day: date, by: float = 20, failed: int = 60) -> None:
    """A night on which one generator is worse."""
    put_night(ctx, day, {"large": usual(day, "large") - by, "small": usual(day, "small")}, {"large": failed})


def put_scores(ctx: Context, day: date, scores: dict[str, tuple[float, str]]) -> None:
    """Traces of the generator `large` with their score and diagnosis."""
    at = {"recipe": ctx.recipe, "date": day, "app": "shop", "generator": "large", "judge_version": ctx.judge_version}
    found = [
        {**blank(TRACE_SCORES), **at, "trace_id": t, "timestamp": datetime(2026, 11, 1, tzinfo=UTC), "groundedness_status": "scored",
         "groundedness_score": score, "context_relevance_status": "na", "answer_relevance_status": "scored", "diagnosis": diagnosis}
        for t, (score, diagnosis) in scores.items()
    ]  # fmt: skip
    ctx.lake.write(TRACE_SCORES, "p", from_rows(found, TRACE_SCORES), ctx.recipe, str(day))


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    found = context(tmp_path)
    history(found)
    return found


def test_the_width_of_an_interval_is_what_counts(tmp_path: Path) -> None:
    """Near the end of the scale an interval reaches farther inwards, and is no wider for it."""
    found = []
    for aside in (0, -HALF / 2):
        (root := tmp_path / str(aside)).mkdir()
        ctx = context(root)
        for n in range(NIGHTS):
            day = DAY + timedelta(days=n)
            put_night(ctx, day, {"large": usual(day, "large")}, aside=aside)
        put_night(ctx, FELL, {"large": 60}, aside=aside)
        find_alerts(over(ctx, FELL))
        found += rows(ctx, ALERTS)
    assert [found[0][c] for c in ("change_low", "change_high", "p")] == [
        found[1][c] for c in ("change_low", "change_high", "p")
    ]


def test_a_drop_is_reported_with_its_generator_layer_size_and_worst_traces(ctx: Context) -> None:
    fallen(ctx, FELL)
    put_scores(ctx, FELL, {"a": (90, "healthy"), "b": (0, "prompt"), "c": (10, "generator"), "d": (0, "generator")})
    result = find_alerts(over(ctx, FELL))
    assert (result.computed, result.reused) == (1, 0)
    (alert,) = rows(ctx, ALERTS)
    assert (alert["app"], alert["generator"], alert["number"], alert["direction"]) == (
        "shop",
        "large",
        "groundedness",
        "down",
    )
    assert (alert["date"], alert["since"], alert["nights"], alert["nights_before"]) == (FELL, FELL, 1, NIGHTS)
    assert alert["change_low"] < -20 < alert["change_high"]
    assert alert["mean"] - alert["baseline_mean"] == pytest.approx(alert["change"], abs=1e-5)
    assert alert["p"] < alert["p_limit"] < 1 / 365
    assert alert["layer"] == "generator"
    # Lowest first; of the two at 0, the one of the likely layer.
    assert alert["worst_trace_ids"] == ["d", "b", "c", "a"]
    assert alert["noise_sd"] is None  # nobody has measured it
    assert (alert["status"], alert["announced_at"], alert["sent_at"], alert["sent"]) == ("fired", None, None, [])


def test_while_it_lasts_it_is_not_reported_again_and_a_night_that_is_run_again_changes_nothing(ctx: Context) -> None:
    for n in range(3):
        fallen(ctx, FELL + timedelta(days=n))
    first = find_alerts(over(ctx, FELL, FELL + timedelta(days=2)))
    fired = rows(ctx, ALERTS)
    again = find_alerts(over(ctx, FELL, FELL + timedelta(days=2)))
    assert (first.computed, again.computed, again.reused) == (1, 0, 1)
    assert rows(ctx, ALERTS) == fired
    assert len(fired) == 1


def test_the_end_of_a_change_is_recorded_on_the_alert(ctx: Context) -> None:
    back = FELL + timedelta(days=2)
    for day in (FELL, FELL + timedelta(days=1)):
        fallen(ctx, day)
    put_night(ctx, back, {"large": 80, "small": 80})
    find_alerts(over(ctx, FELL, back - timedelta(days=1)))
    result = find_alerts(over(ctx, back))
    assert result.computed == 1
    (alert,) = alerts(ctx)
    assert (alert["status"], alert["until"], alert["recovered_on"]) == ("recovered", back - timedelta(days=1), back)
    assert alerts_on(ctx, back) == alerts_on(ctx, FELL) == [alert]
    assert find_alerts(over(ctx, FELL, back)).computed == 0
    # A second time the same thing happens, it is news again.
    put_night(ctx, back + timedelta(days=1), {"large": 60, "small": 80})
    assert find_alerts(over(ctx, back + timedelta(days=1))).computed == 1
    assert len(alerts(ctx)) == 2


def test_a_return_that_is_not_there_any_more_is_taken_back(ctx: Context) -> None:
    back = FELL + timedelta(days=1)
    fallen(ctx, FELL)
    put_night(ctx, back, {"large": 80, "small": 80})
    find_alerts(over(ctx, FELL, back))
    assert alerts(ctx)[0]["status"] == "recovered"
    fallen(ctx, back)  # late traces
    find_alerts(over(ctx, back))
    (alert,) = alerts(ctx)
    assert (alert["status"], alert["until"], alert["recovered_on"]) == ("fired", None, None)


def test_a_late_night_shows_nothing_that_a_later_one_has_reported(ctx: Context) -> None:
    """The night after the first bad one was computed before it: both nights show the same drop."""
    after = FELL + timedelta(days=1)
    fallen(ctx, after)
    find_alerts(over(ctx, after))
    fired = alerts(ctx)
    fallen(ctx, FELL)
    assert find_alerts(over(ctx, FELL)).computed == 0
    find_alerts(over(ctx, after))  # may see the drop begin a night earlier, in the same alert
    assert [a["date"] for a in alerts(ctx)] == [a["date"] for a in fired] == [after]


def test_a_late_night_shows_what_no_later_one_has_reported(ctx: Context) -> None:
    put_night(ctx, FELL + timedelta(days=1), {"large": 80, "small": 80})
    find_alerts(over(ctx, FELL + timedelta(days=1)))
    fallen(ctx, FELL)
    assert find_alerts(over(ctx, FELL)).computed == 1


def test_a_night_that_is_good_after_all_takes_back_what_nobody_has_heard(ctx: Context) -> None:
    fallen(ctx, FELL)
    find_alerts(over(ctx, FELL))
    put_night(ctx, FELL, {"large": 80, "small": 80})
    find_alerts(over(ctx, FELL))
    assert alerts(ctx) == []
    fallen(ctx, FELL)
    find_alerts(over(ctx, FELL))
    heard = [{**alerts(ctx)[0], "announced_at": datetime(2026, 11, 30, tzinfo=UTC)}]
    write(ctx, FELL, heard)
    put_night(ctx, FELL, {"large": 80, "small": 80})
    find_alerts(over(ctx, FELL))
    assert alerts(ctx) == heard


def test_another_judge_starts_afresh(ctx: Context) -> None:
    """Its numbers are another level of the same thing: no night of the judge before is compared with them."""
    other = replace(ctx, recipe="0" * 16)
    for n in range(3):
        put_night(other, FELL + timedelta(days=n), {"large": 50, "small": 50})
    assert find_alerts(over(other, FELL, FELL + timedelta(days=2))).computed == 0
    assert alerts(other) == []


def test_the_judges_noise_counts_where_it_was_measured(ctx: Context) -> None:
    """200 traces that a judge moves by 80 each move the mean by 5.7: 20 points are 3.4 of that."""
    fallen(ctx, FELL)
    row = {
        **blank(JUDGE_NOISE), "judge_version": ctx.judge_version, "recipe": ctx.recipe, "from_date": DAY, "to_date": DAY,
        "measured_at": datetime(2026, 11, 1, tzinfo=UTC), "number": "groundedness", "trace_sd": 80.0,
    }  # fmt: skip
    ctx.lake.write(JUDGE_NOISE, "m", from_rows([row], JUDGE_NOISE))
    assert find_alerts(over(ctx, FELL)).computed == 0
    later = {**row, "measured_at": datetime(2026, 11, 2, tzinfo=UTC), "trace_sd": 8.0}
    ctx.lake.write(JUDGE_NOISE, "n", from_rows([later], JUDGE_NOISE))
    assert find_alerts(over(ctx, FELL)).computed == 1
    (alert,) = alerts(ctx)
    assert alert["noise_sd"] == pytest.approx(8 * (1 / 200 + 1 / 4000) ** 0.5, abs=1e-4)


def test_a_grade_alerts_where_its_mean_changed_and_names_the_traces_with_the_worst_grades(tmp_path: Path) -> None:
    """Completeness falls from about 4 to 3; usefulness, which hardly ever applies, falls too, with too few traces."""
    (tmp_path / "grader.yaml").write_text("kind: random\n")
    ctx = context(tmp_path, recipe={"grades": {"grader": "grader.yaml"}})
    assert ctx.grader is not None
    at = {"recipe": ctx.recipe, "app": "shop", "generator": "large", "judge_version": ctx.judge_version}
    for day in (DAY + timedelta(days=n) for n in range(NIGHTS + 1)):
        put_night(ctx, day, {"large": usual(day, "large")})
        fall = 1 if day == FELL else 0
        means = {"completeness": 4 + (usual(day, "c") - 80) / 40 - fall, "usefulness": 1 - fall}
        found = [
            {**blank(NIGHTLY_GRADES), **at, "date": day, "grader_version": ctx.grader.version, "grade": grade, "n": TRACES,
             "n_scored": n, "n_na": TRACES - n, "grade_mean": means[grade], "grade_low": means[grade] - 0.1, "grade_high": means[grade] + 0.1}
            for grade, n in (("completeness", TRACES // 2), ("usefulness", 5))
        ]  # fmt: skip
        ctx.lake.write(NIGHTLY_GRADES, "night", from_rows(found, NIGHTLY_GRADES), ctx.recipe, str(day))
    put_scores(ctx, FELL, {"a": (90, "healthy"), "b": (0, "healthy"), "c": (10, "healthy")})
    values = {"a": 1.0, "b": 4.0, "c": None}  # c's passages have no answer
    given = [
        {**blank(GRADES), "date": FELL, "trace_id": t, "grader_version": ctx.grader.version, "grade": "completeness",
         "extractor_version": ctx.extractor.version, "status": "na" if v is None else "scored", "value": v, "engine": "none"}
        for t, v in values.items()
    ]  # fmt: skip
    ctx.lake.write(GRADES, "p", from_rows(given, GRADES), ctx.grader.version, str(FELL))
    find_alerts(over(ctx, FELL))
    (alert,) = alerts(ctx)
    assert (alert["number"], alert["direction"]) == ("grade_completeness", "down")
    assert alert["change_low"] < -1 < alert["change_high"]
    assert alert["worst_trace_ids"] == ["a", "b"]
    assert find_alerts(over(ctx, FELL)).computed == 0


def test_the_smallest_change_is_a_hundredth_of_the_scale() -> None:
    numbers = ("groundedness", "faithfulness", "grade_completeness", "grade_faithfulness")
    assert [Alerts().least(number) for number in numbers] == [1.0, 0.01, 0.04, 0.01]


@pytest.mark.parametrize(
    "settings",
    [
        {"numbers": ["faithfulness", "answer_relevance"]},
        {"numbers": []},
        {"least_nights": NIGHTS + 1},
        {"least_traces": TRACES + 1},
        {"least_change": {"groundedness": 40}},
        {"false_alerts": 1e-30},
    ],
)
def test_every_setting_can_silence_it(ctx: Context, settings: dict[str, Any]) -> None:
    fallen(ctx, FELL)
    quiet = replace(ctx, config=ctx.config.model_copy(update={"alerts": Alerts.model_validate(settings)}))
    assert find_alerts(over(quiet, FELL)).computed == 0


def test_nobody_acts_on_a_shadow_judge(ctx: Context) -> None:
    fallen(ctx, FELL)
    assert find_alerts(replace(over(ctx, FELL), shadow=True)).computed == 0


def test_only_so_many_nights_are_looked_back_on(ctx: Context) -> None:
    fallen(ctx, FELL)
    ten = replace(ctx, config=ctx.config.model_copy(update={"alerts": Alerts(nights=10, least_nights=5)}))
    find_alerts(over(ten, FELL))
    assert alerts(ctx)[0]["nights_before"] == 10


@pytest.mark.parametrize(
    "secret", ["slack://TokenA/TokenB/SECRET", ["slack://SECRET"], ["env:"], [{"SECRET": 1}], "SECRET"]
)
def test_a_url_in_the_config_is_refused_and_not_repeated(tmp_path: Path, secret: Any) -> None:
    with pytest.raises(ConfigError, match=r"alerts is a mapping.* neither env:NAME nor file:PATH") as caught:
        context(tmp_path, alerts={"notify": secret})
    assert "SECRET" not in str(caught.value)


def test_least_nights_above_nights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="least_nights above nights"):
        context(tmp_path, alerts={"nights": 10})


def test_a_file_of_urls_is_relative_to_the_config(tmp_path: Path) -> None:
    settings = context(tmp_path, alerts={"notify": ["env:HOOK", "file:urls.txt"]}).config.alerts
    assert settings.notify == ("env:HOOK", f"file:{(tmp_path / 'urls.txt').resolve()}")
