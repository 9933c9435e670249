"""Alerts: quiet on quiet nights, soon after a real drop, and once. Nights are drawn from a fixed seed, so that each
simulated result is the same in every run.
"""

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.stats.alerting import WINDOWS, Change, Night, PastChange, Return, Rules, level, likely_layer, watch

FIRST = date(2026, 1, 1)
NUMBERS = 20  # 2 apps × 2 generators × 5 numbers
RULES = Rules(nights=42, least_nights=14, least_change=1.0, level=level(3.0, NUMBERS))
TRACE_SD = 30.0


def night(day: int, mean: float, n: int = 200, se: float | None = None) -> Night:
    return Night(FIRST + timedelta(days=day), n, mean, TRACE_SD / math.sqrt(n) if se is None else se)


def drawn(rng: np.random.Generator, day: int, mean: float, n: int = 200) -> Night:
    """A night of `n` traces around a true mean, with the standard error that such a night would show."""
    values = mean + TRACE_SD * rng.standard_normal(n)
    return night(day, float(values.mean()), n, float(values.std(ddof=1)) / math.sqrt(n))


class Watcher:
    """One number from night to night, with what was told of it."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules = rules
        self.nights: list[Night] = []
        self.past: list[PastChange] = []
        self.changes: list[tuple[date, Change]] = []
        self.returns: list[tuple[date, Return]] = []

    def see(self, tonight: Night) -> None:
        self.nights.append(tonight)
        found = watch(self.nights[-100:], self.past, self.rules)
        if isinstance(found, Change):
            self.past.append(PastChange(tonight.day, found.days[0], found.before, found.level))
            self.changes.append((tonight.day, found))
        elif isinstance(found, Return):
            self.past[-1] = replace(self.past[-1], until=found.until)
            self.returns.append((tonight.day, found))


def test_a_hundred_quiet_nights_give_at_most_one_alert() -> None:
    """The budget of three a year is 0.8 in 100 nights, and Bonferroni's bound is far from reached, since the windows
    overlap: simulated over many years it is 0.2 (bench/README.md), so that two or more would come up in 2% of the seeds.
    Nights differ by 1 point beyond sampling, half of a night's sampling error.
    """
    rng = np.random.default_rng(7)
    watchers = [Watcher() for _ in range(NUMBERS)]
    for day in range(14 + 100):  # the first 14 can't tell anything
        for watcher in watchers:
            watcher.see(drawn(rng, day, 80 + rng.standard_normal()))
    assert sum(len(w.changes) for w in watchers) <= 1


def test_a_lasting_drop_is_reported_once_with_its_size_and_so_is_its_end() -> None:
    """5 points at 200 traces a night are 2.4 sampling errors of a night: a few nights together show them."""
    rng = np.random.default_rng(1)
    watcher = Watcher()
    for day in range(50):
        watcher.see(drawn(rng, day, 80))
    for day in range(50, 80):
        watcher.see(drawn(rng, day, 75))
    ((told_on, change),) = watcher.changes
    assert told_on <= FIRST + timedelta(days=50 + 14)
    assert change.days[-1] == told_on
    assert change.days_before[-1] < change.days[0]
    assert change.low <= -5 <= change.high
    assert change.low < change.change < change.high < 0
    assert change.level == pytest.approx(change.before + change.change)
    for day in range(80, 100):
        watcher.see(drawn(rng, day, 80))
    assert len(watcher.changes) == 1
    ((seen_on, back),) = watcher.returns
    assert seen_on <= FIRST + timedelta(days=80 + 14)
    assert abs((back.until - (FIRST + timedelta(days=79))).days) <= 3


def test_a_second_drop_is_another_change() -> None:
    rng = np.random.default_rng(2)
    watcher = Watcher()
    for day in range(100):
        watcher.see(drawn(rng, day, 80 if day < 40 else 68 if day < 70 else 55))
    assert [round((day - FIRST).days, -1) for day, _ in watcher.changes] == [40, 70]
    assert all(c.change < -8 for _, c in watcher.changes)
    assert not watcher.returns


def test_a_new_level_becomes_normal() -> None:
    """After `nights` nights at a new level nothing returns any more: going back is a change, upwards."""
    watcher = Watcher(replace(RULES, nights=20))
    for day in range(90):
        watcher.see(night(day, (80.0 if not 30 <= day < 65 else 65.0) + (day % 3 - 1) / 2))
    assert [c.change > 0 for _, c in watcher.changes] == [False, True]
    assert not watcher.returns


def test_nights_of_a_change_that_is_over_are_compared_with_nothing() -> None:
    watcher = Watcher()
    for day in range(40):
        watcher.see(night(day, (60.0 if 30 <= day < 33 else 80.0) + (day % 3 - 1) / 2))
    assert (len(watcher.changes), len(watcher.returns)) == (1, 1)
    assert watcher.returns[0][1].until == FIRST + timedelta(days=32)
    watcher.see(night(40, 60.0))
    assert watcher.changes[1][1].before == pytest.approx(80, abs=0.1)
    assert not {FIRST + timedelta(days=d) for d in (30, 31, 32)} & set(watcher.changes[1][1].days_before)


def quiet(count: int = 30) -> list[Night]:
    """Nights that differ as sampling would have it."""
    return [night(d, 80 + 2.1 * float(stats.norm.ppf(((d * 7) % count + 0.5) / count))) for d in range(count)]


def test_too_few_nights_say_nothing() -> None:
    nights = [night(d, 80 + d % 2) for d in range(13)]
    assert watch([*nights, night(13, 10)], [], RULES) is None
    assert isinstance(watch([*nights, night(13, 81), night(14, 10)], [], RULES), Change)


def test_without_any_standard_error_nothing_is_reported() -> None:
    nights = [replace(n, se=None) for n in quiet()]
    assert watch([*nights, Night(FIRST + timedelta(days=30), 200, 10, None)], [], RULES) is None


def test_a_small_change_is_not_reported_however_sure() -> None:
    nights = [night(d, 80 + d % 2 / 100, n=1_000_000) for d in range(30)]
    fallen = [*nights, night(30, 79.2, n=1_000_000)]
    assert watch(fallen, [], RULES) is None
    assert isinstance(watch(fallen, [], replace(RULES, least_change=0.5)), Change)


def test_nothing_is_reported_within_the_judges_own_noise() -> None:
    """All scores of a night are the same, so that sampling explains nothing; a judge that moves each trace by 60 moves
    the mean of 25 of them by 12, and a drop of 15 is little more than that."""
    nights = [night(d, 80.0, n=25, se=0.0) for d in range(30)]
    fallen = [*nights, night(30, 65.0, n=25, se=0.0)]
    found = watch(fallen, [], RULES)
    assert isinstance(found, Change)
    assert found.noise_sd == 0
    assert watch(fallen, [], RULES, trace_noise=60.0) is None
    known = watch(fallen, [], RULES, trace_noise=5.0)
    assert isinstance(known, Change)
    assert known.noise_sd == pytest.approx(5 * math.sqrt(1 / 25 + 1 / (30 * 25)))


def test_a_night_with_few_failures_less_than_usual_is_no_news() -> None:
    """20 traces without a failure have no spread of their own; what one trace's score spreads by is known all the same."""
    nights = [night(d, 85 + (d % 5 - 2), n=20, se=30 / math.sqrt(20)) for d in range(30)]
    assert watch([*nights, night(30, 100.0, n=20, se=0.0)], [], RULES) is None


@pytest.mark.parametrize("gap", [4.0, 6.0, 8.0])
def test_with_negligible_sampling_it_is_students_t(gap: float) -> None:
    """Far above its scale the half-Cauchy prior of τ falls as 1/τ². With the likelihood of k nights around an unknown
    mean, τ^-(k - 1) · exp(-SS / 2τ²), the posterior is that of Student's t with k degrees of freedom and variance SS/k.
    """
    rng = np.random.default_rng(3)
    k = 20
    values = 50 + rng.standard_normal(k)
    scale = math.sqrt(((values - values.mean()) ** 2).sum() / k * (1 + 1 / k))
    nights = [night(d, float(v), se=1e-4) for d, v in enumerate(values)]
    last = night(k, float(values.mean() - gap * scale), se=1e-4)
    # 20 nights before: of several nights together there would be too few
    found = watch([*nights, last], [], Rules(k, k, 0.0, level=1.0))
    assert isinstance(found, Change)
    assert found.p == pytest.approx(2 * stats.t.sf(gap, k), rel=0.05)
    t = float(stats.t.ppf(0.975, k))
    assert found.high - found.low == pytest.approx(2 * t * scale, rel=0.02)


means = st.binary(min_size=16, max_size=40).map(lambda drawn: [20 + b / 4 for b in drawn])
LOOSE = Rules(nights=42, least_nights=14, least_change=0.0, level=2.0)


@settings(deadline=None)  # a busy machine is no failure
@given(means)
def test_it_is_never_surer_than_sampling_allows(values: list[float]) -> None:
    found = watch([night(d, v) for d, v in enumerate(values)], [], LOOSE)
    assert isinstance(found, Change)
    n, m = len(found.days), len(found.days_before)
    se = TRACE_SD / math.sqrt(200) * math.sqrt(1 / n + 1 / m)
    assert found.p >= 2 * stats.norm.sf(abs(found.change) / se) * (1 - 1e-9)
    assert found.low <= found.change <= found.high


@settings(deadline=None)  # a busy machine is no failure
@given(means, st.floats(0.01, 100), st.booleans())
def test_units_and_direction_do_not_matter(values: list[float], unit: float, turned: bool) -> None:
    sign = -1 if turned else 1
    other = [
        Night(n.day, n.n, sign * unit * n.mean + 5, unit * (n.se or 0))
        for n in (night(d, v) for d, v in enumerate(values))
    ]
    found = watch([night(d, v) for d, v in enumerate(values)], [], LOOSE)
    again = watch(other, [], LOOSE)
    assert isinstance(found, Change)
    assert isinstance(again, Change)
    assume(found.p > 1e-200)
    assert again.p == pytest.approx(found.p, rel=1e-6)
    assert again.change == pytest.approx(sign * unit * found.change, rel=1e-6, abs=1e-9 * unit)


def test_the_budget_is_shared() -> None:
    """A year's false alerts, over 365 nights, the numbers, and what each is compared over."""
    assert level(1.0, 20) == pytest.approx(1 / 365 / 20 / len(WINDOWS))
    assert level(2.0, 1) == pytest.approx(40 * level(1.0, 20))


class TestLayer:
    BEFORE = {"healthy": 700, "generator": 200, "retrieval": 80, "prompt": 20}

    def test_the_share_that_grew_most(self) -> None:
        assert (
            likely_layer(self.BEFORE, {"healthy": 50, "generator": 42, "retrieval": 6, "prompt": 2}, down=True)
            == "generator"
        )

    def test_of_a_rise_the_share_that_shrank_most(self) -> None:
        assert (
            likely_layer(self.BEFORE, {"healthy": 97, "generator": 1, "retrieval": 1, "prompt": 1}, down=False)
            == "generator"
        )

    def test_none_where_chance_would_do(self) -> None:
        """22% instead of 20% of 100 traces: half a standard error."""
        assert (
            likely_layer(self.BEFORE, {"healthy": 68, "generator": 22, "retrieval": 8, "prompt": 2}, down=True) is None
        )

    def test_none_without_diagnoses(self) -> None:
        assert likely_layer({}, {"generator": 10}, down=True) is None
        assert likely_layer(self.BEFORE, {}, down=True) is None
