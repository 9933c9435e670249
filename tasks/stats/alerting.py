"""Decides whether a watched number has changed, by comparing its last nights with the nights before them.

Method: docs/methods.md#noise-and-confidence.

A change raises one alert, and its end another. Nothing here reads or writes; past alerts are an argument. Left out:
changes of shares and counts (volume, unjudged traces, patterns), and slow drifts, which recent nights follow.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import scipy

from tasks.stats.intervals import LEVEL, Numbers, Z

WINDOWS = (1, 2, 3, 4, 5, 7, 10, 14)  # numbers of last nights that are compared, together, with the nights before them
LONGEST = WINDOWS[-1]
LAYERS = ("retrieval", "generator", "prompt")
ODDS = 1_000.0  # required odds of the level before a change, against the changed level, for a return
NIGHTS_A_YEAR = 365
_U = (np.arange(48) + 0.5) / 48  # midpoints, for a grid over [0, ∞) of the standard deviation between nights
PRIOR = 1.0  # scale of its prior, in sampling errors of a night
_RESOLUTION = 1e-6  # of stored numbers; no standard error is smaller
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rules:
    """How a number is watched.

    Attributes:
        nights: Maximum nights that the last ones are compared with.
        least_nights: Minimum nights that the last ones are compared with.
        least_change: Smallest change, in the number's unit, that raises an alert.
        level: A difference raises an alert only if it is less probable than this on quiet nights; see `level`.
    """

    nights: int
    least_nights: int
    least_change: float
    level: float


@dataclass(frozen=True, slots=True)
class Night:
    """A nightly mean over `n` traces. `se` is its standard error; None with fewer than two questions."""

    day: date
    n: int
    mean: float
    se: float | None


@dataclass(frozen=True, slots=True)
class PastChange:
    """A change that raised an alert on night `day`.

    Attributes:
        since: First night of the change.
        before: Mean of the nights before it.
        level: Mean since the change.
        until: Last night of the change; None while it lasts.
    """

    day: date
    since: date
    before: float
    level: float
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The number of the last nights differs from that of the nights before.

    Attributes:
        days: The last nights: the window that differs most clearly.
        days_before: The nights they are compared with.
        before: Mean of `days_before`.
        level: Mean of `days`.
        change: level − before; `low` and `high` are the ends of its 95% interval.
        between_sd: Standard deviation between nights that sampling does not explain.
        noise_sd: Standard deviation of the change due to the judge's noise only.
        p: Probability of such a large difference on quiet nights.
    """

    days: tuple[date, ...]
    days_before: tuple[date, ...]
    before: float
    level: float
    change: float
    low: float
    high: float
    between_sd: float
    noise_sd: float
    p: float


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a change. `until` is the last changed night."""

    until: date


def level(false_alerts_a_year: float, numbers: int) -> float:
    """Significance level of one comparison that gives at most this many false alerts a year (Bonferroni).

    Args:
        numbers: Count of numbers watched on one night, each over all `WINDOWS`.
    """
    return false_alerts_a_year / NIGHTS_A_YEAR / max(numbers, 1) / len(WINDOWS)


def watch(
    nights: Sequence[Night], past: Sequence[PastChange], rules: Rules, trace_noise: float = 0.0
) -> Change | Return | None:
    """The change, or the end of one, on the last of these nights; None if there is neither.

    Nights of a past change are left out of all comparisons. While a change lasts, only the nights since are compared
    with each other: a second change can fire when there are enough of them, and after more than `rules.nights` of them
    the change can no longer end.

    Args:
        nights: Sorted by day, each with the number, for one recipe, app and generator.
        past: Changes of earlier nights that raised an alert, sorted by day.
        rules: See `Rules`.
        trace_noise: Standard deviation of one trace's number due to the judge's noise; 0 if unknown.
    """
    if not nights:
        return None
    today = nights[-1].day
    lasting = lasting_change(past, today)
    quiet = [
        n
        for n in nights
        if (lasting is None or n.day >= lasting.since)
        and not any(not _lasts(t, today) and t.since <= n.day <= (t.until or today) for t in past)
    ]
    if lasting is not None and (back := _returned(nights, quiet, lasting, rules, trace_noise)):
        return back
    if not quiet or quiet[-1].day != today:
        return None
    return _changed(quiet[-(rules.nights + LONGEST) :], rules, trace_noise)


def lasting_change(past: Sequence[PastChange], today: date) -> PastChange | None:
    """The latest lasting change, as known at the beginning of `today`."""
    return next((t for t in reversed(past) if _lasts(t, today)), None)


def _lasts(past: PastChange, today: date) -> bool:
    return past.until is None or past.until >= today


def _changed(nights: Sequence[Night], rules: Rules, trace_noise: float) -> Change | None:
    """The clearest difference between the last nights and those before; None if it is not clear enough."""
    count = len(nights)
    windows = [w for w in WINDOWS if count - w >= rules.least_nights]
    variances = _variances(nights, trace_noise)
    if not windows or variances is None:
        return None
    at = np.arange(count)
    last = np.array([at >= count - w for w in windows])
    before = np.array([(at < count - w) & (at >= count - w - rules.nights) for w in windows])
    means = np.array([n.mean for n in nights])
    found = _compare(means, *variances, before, last)
    best = int(np.argmin(found.p))
    change = found.expected(found.gap)[best]
    if found.p[best] >= rules.level or abs(change) < rules.least_change:
        return None
    traces = np.array([n.n for n in nights], float)
    noise = trace_noise * math.sqrt(1 / traces[last[best]].sum() + 1 / traces[before[best]].sum())
    low, high = found.interval(best)
    base = float(found.expected(found.base)[best])
    return Change(
        days=tuple(n.day for n in nights[count - windows[best] :]),
        days_before=tuple(n.day for n, taken in zip(nights, before[best], strict=True) if taken),
        before=base,
        level=base + float(change),
        change=float(change),
        low=low,
        high=high,
        between_sd=float(found.expected(found.between)[best]),
        noise_sd=noise,
        p=float(found.p[best]),
    )


def _returned(
    nights: Sequence[Night], since: Sequence[Night], past: PastChange, rules: Rules, trace_noise: float
) -> Return | None:
    """The end of a change, if the last nights support the level before it with odds of `ODDS`."""
    after = [n for n in since if n.day > past.day]
    if len(since) > rules.nights or past.level == past.before:
        return None
    variances = _variances(nights, trace_noise)
    if variances is None:
        return None
    old = [i for i, n in enumerate(nights) if n.day < past.since][-rules.nights :]
    means, (base, own) = np.array([n.mean for n in nights]), variances
    between = 0.0
    if len(old) > 1:
        masks = np.zeros((1, len(nights)), bool)
        masks[0, old] = True
        seen = _compare(means, base, own, masks, masks)
        between = float(seen.expected(seen.between**2)[0])
    known = 1 / sum(1 / (base[i] + between) for i in old) if old else 0.0
    for w in (w for w in WINDOWS if w <= len(after)):
        weights = 1 / (own[-w:] + between)
        mean = float(weights @ means[-w:] / weights.sum())
        spoken = (mean - (past.before + past.level) / 2) * (past.before - past.level) / (1 / weights.sum() + known)
        if spoken >= math.log(ODDS):
            changed = [n.day for n in nights[: len(nights) - w]]
            return Return(until=changed[-1])
    return None


def _variances(nights: Sequence[Night], trace_noise: float) -> tuple[Numbers, Numbers] | None:
    """Sampling variances of the nightly means: pooled over all nights, and the larger of pooled and own.

    A night's own standard error depends on its mean (few scores below the top make it small), so weights from it would
    favor high nights. The judge's noise is part of the variation between traces and so a lower limit of their variance.
    The result is None if no night has a standard error.
    """
    known = [(n.n, n.se) for n in nights if n.se is not None]
    if not known:
        return None
    of_trace = max(sum((n * se) ** 2 for n, se in known) / sum(n for n, _ in known), trace_noise**2)
    pooled = np.array([max(of_trace / n.n, _RESOLUTION**2) for n in nights])
    own = np.array([(n.se or 0.0) ** 2 for n in nights])
    return pooled, np.maximum(pooled, own)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Differences for w windows and g standard deviations between nights. Arrays are (w, g) unless marked otherwise."""

    weight: Numbers  # posterior of each standard deviation; sums to 1 in each window
    between: Numbers
    base: Numbers
    gap: Numbers
    error: Numbers
    p: Numbers  # (w,)

    def expected(self, values: Numbers) -> Numbers:
        """(w,) posterior mean of a quantity."""
        mean: Numbers = (self.weight * values).sum(axis=1)
        return mean

    def interval(self, window: int) -> tuple[float, float]:
        """95% interval of one window's difference."""
        weight, gap, error = self.weight[window], self.gap[window], self.error[window]
        ends = float((gap - 60 * error).min()), float((gap + 60 * error).max())

        def end(share: float) -> float:
            return float(scipy.optimize.brentq(lambda x: weight @ scipy.special.ndtr((x - gap) / error) - share, *ends))

        return end((1 - LEVEL) / 2), end((1 + LEVEL) / 2)


def _compare(means: Numbers, base: Numbers, own: Numbers, before: Mask, last: Mask) -> _Compared:
    """Compare the means of the last nights and the nights before, for each standard deviation τ between nights.

    Night d has variance v_d + τ². τ has a half-Cauchy prior, scaled by the sampling error of a night, and its posterior
    comes from the nights before (Gelman et al., Bayesian Data Analysis, 5.21, for the mean of normal groups). With few
    nights τ is uncertain, which gives wide tails, as with Student's t.

    Args:
        means: (k,) nightly means.
        base: (k,) sampling variances for the nights before.
        own: (k,) sampling variances for the last nights.
        before: (w, k) nights that each window is compared with, at least one.
        last: (w, k) nights of each window.
    """
    y = means - means.mean()
    error2 = float(base.mean())
    tau = math.sqrt(error2 + float(y @ y) / len(y)) * _U / (1 - _U)  # (g,)
    variance = base[:, None] + tau**2  # (k, g)
    total = before @ (1 / variance)  # (w, g), as everything below
    mean = before @ (y[:, None] / variance) / total
    misfit = before @ (y[:, None] ** 2 / variance) - mean**2 * total
    log = -0.5 * (np.log(total) + before @ np.log(variance) + misfit)
    log += -np.log1p(tau**2 / (PRIOR**2 * error2)) - 2 * np.log(1 - _U)  # prior, and spacing of the grid
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    variance = own[:, None] + tau**2
    of_last = last @ (1 / variance)
    gap = last @ (y[:, None] / variance) / of_last - mean
    error = np.sqrt(1 / total + 1 / of_last)
    p = (weight * 2 * scipy.special.ndtr(-np.abs(gap) / error)).sum(axis=1)
    return _Compared(weight, np.broadcast_to(tau, weight.shape), mean + means.mean(), gap, error, p)


def likely_layer(before: Mapping[str, int], last: Mapping[str, int], *, down: bool) -> str | None:
    """The layer of the triad whose share of the diagnoses moved most in the opposite direction to a number.

    Args:
        before: Traces by diagnosis on the nights before, without undiagnosed ones.
        last: The same for the nights that differ.
        down: Whether the number went down.

    Returns:
        None if no share moved by more than chance (1.96 standard errors), or if nothing was diagnosed.
    """
    n, m = sum(before.values()), sum(last.values())
    if not n or not m:
        return None
    moved: dict[str, float] = {}
    for layer in LAYERS:
        a, b = before.get(layer, 0), last.get(layer, 0)
        pooled = (a + b) / (n + m)
        error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        growth = (b / m - a / n) * (1 if down else -1)
        if error and growth / error > Z:
            moved[layer] = growth
    return max(moved, key=lambda layer: moved[layer], default=None)
