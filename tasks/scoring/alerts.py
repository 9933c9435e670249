"""Alerts: compares every watched number with its recent nights (docs/methods.md#noise-and-confidence).

A change raises one alert, and its end another. Earlier alerts are read from the table: running a night again does not
repeat an alert, and a night that arrives late does not repeat one of a later night. Left out: sending
(`flows/alerts.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import polars as pl

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import (
    ALERTS,
    GRADES,
    JUDGE_NOISE,
    NIGHTLY_CITATIONS,
    NIGHTLY_GRADES,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_RELEVANCE,
    NIGHTLY_TRIAD,
    NIGHTLY_UTILIZATION,
    TRACE_SCORES,
    Table,
)
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.stats.alerting import (
    LONGEST,
    Change,
    Night,
    PastChange,
    Return,
    Rules,
    lasting_change,
    level,
    likely_layer,
    watch,
)
from tasks.stats.intervals import Z
from tasks.store.lake import Part, from_rows
from tasks.store.query import Queries

STAGE = "alerts"
PART = "night"
WATCHED = (NIGHTLY_GROUNDEDNESS, NIGHTLY_UTILIZATION, NIGHTLY_RELEVANCE, NIGHTLY_CITATIONS, NIGHTLY_GRADES)
NIGHTS = NIGHTLY_RELEVANCE  # every recipe fills this table, so its partitions are the existing nights
WORST = 5
Key = tuple[str, str, str]  # app, generator, number
Row = dict[str, Any]


def find_alerts(ctx: Context) -> StageResult:
    """Find changes on the run's nights, oldest first; returns alerts that fired or ended, and unchanged ones.

    Numbers of a shadow judge are not watched, because nobody acts on them.
    """
    if ctx.shadow or not ctx.config.alerts.numbers:
        return StageResult(STAGE)
    days = sorted(date.fromisoformat(d) for d in ctx.lake.values(NIGHTS, ctx.recipe))
    mine = [d for d in days if ctx.covers(d)]
    computed = reused = 0
    with tracked(ctx.progress, STAGE, len(mine)), ctx.queries() as queries:
        for day in mine:
            before = _by_id(alerts(ctx))
            after = _by_id(_night(ctx, queries, day, days, list(before.values())))
            changed = {i for i in {*before, *after} if before.get(i) != after.get(i)}
            nights = {(after.get(i) or before[i])["date"] for i in changed}
            for night in nights:
                write(ctx, night, [r for r in after.values() if r["date"] == night])
            computed += len(changed & set(after))
            reused += sum(r["date"] == day for i, r in after.items() if i not in changed)
            ctx.progress.advance()
    return StageResult(STAGE, computed=computed, reused=reused)


def alerts(ctx: Context) -> list[Row]:
    """All alerts of the recipe, by night."""
    return ctx.lake.frame(ALERTS, ctx.recipe).sort("date", "app", "generator", "number").rows(named=True)


def alerts_on(ctx: Context, *days: date) -> list[Row]:
    """The alerts that fired on these nights, or ended on them."""
    return [r for r in alerts(ctx) if r["date"] in days or r["recovered_on"] in days]


def write(ctx: Context, night: date, rows: Sequence[Row]) -> None:
    """Replace the alerts of one night."""
    if rows:
        ctx.lake.write(ALERTS, PART, from_rows(rows, ALERTS), ctx.recipe, str(night))
    else:
        ctx.lake.drop(ALERTS, PART, ctx.recipe, str(night))


def _by_id(rows: Sequence[Row]) -> dict[str, Row]:
    return {r["alert_id"]: r for r in rows}


@dataclass(frozen=True, slots=True)
class _At:
    """The compared night, and the settings that all of its numbers share."""

    day: date
    rules: Mapping[str, Rules]  # by number
    noise: Mapping[str, float]  # standard deviation of one trace's number due to the judge, if measured


def _night(ctx: Context, queries: Queries, day: date, days: Sequence[date], rows: Sequence[Row]) -> list[Row]:
    """All alerts of the recipe, after comparing `day`."""
    settings = ctx.config.alerts
    # Nights of a past change are skipped, so more nights are read than compared.
    until = [d for d in days if d <= day][-2 * (settings.nights + LONGEST) :]
    series = _series(ctx, queries, until)
    tonight = {k: nights for k, nights in series.items() if nights[-1].day == day}
    limit = level(settings.false_alerts, len(tonight))
    at = _At(
        day,
        {n: Rules(settings.nights, settings.least_nights, settings.least(n), limit) for n in settings.numbers},
        _noise(ctx),
    )
    found = list(rows)
    for key, nights in tonight.items():
        mine = [r for r in rows if _key(r) == key]
        others = [r for r in found if _key(r) != key]
        found = others + _one(ctx, queries, at, key, nights, mine)
    return found


def _one(ctx: Context, queries: Queries, at: _At, key: Key, nights: Sequence[Night], mine: Sequence[Row]) -> list[Row]:
    """The alerts of one number, after comparing the night."""
    rules, noise = at.rules[key[2]], at.noise.get(key[2])
    earlier = [_earlier(r, at.day) for r in mine if r["date"] < at.day]
    seen = watch(nights, earlier, rules, noise or 0.0)
    lasting = lasting_change(earlier, at.day)
    found: list[Row] = []
    for row in mine:
        if lasting is not None and row["date"] == lasting.day:
            found.append(_with_end(row, at.day, seen))
        elif row["date"] != at.day or _announced(row):  # announced alerts are never removed
            found.append(row)
    if isinstance(seen, Change) and not any(_fired_later(r, at.day, seen) for r in mine):
        before = next((r for r in mine if r["date"] == at.day), None)
        found = [r for r in found if r["date"] != at.day]
        found.append(_row(ctx, queries, at, key, seen, before))
    return found


def _earlier(row: Row, today: date) -> PastChange:
    """An alert in its state at the beginning of `today`."""
    over = row["recovered_on"] is not None and row["recovered_on"] < today
    return PastChange(row["date"], row["since"], row["baseline_mean"], row["mean"], row["until"] if over else None)


def _fired_later(row: Row, day: date, seen: Change) -> bool:
    """Whether a later night already fired for this change, because this night arrived late or in parts."""
    fired: date = row["date"]
    same = row["direction"] == ("down" if seen.change < 0 else "up")
    return same and fired > day and bool(row["since"] <= day or fired <= day + timedelta(days=LONGEST))


def _announced(row: Row) -> bool:
    return row["announced_at"] is not None or bool(row["sent"])


def _with_end(row: Row, day: date, seen: Change | Return | None) -> Row:
    """The lasting alert, with its end if `day` shows one. An earlier end is kept."""
    if row["recovered_on"] is not None and row["recovered_on"] < day:
        return row
    if isinstance(seen, Return):
        return {**row, "status": "recovered", "until": seen.until, "recovered_on": day}
    if row["recovered_on"] == day:  # an earlier run of this night saw an end that no longer exists
        return {**row, "status": "fired", "until": None, "recovered_on": None}
    return row


def _row(ctx: Context, queries: Queries, at: _At, key: Key, seen: Change, before: Row | None) -> Row:
    app, generator, number = key
    down = seen.change < 0
    layer = _layer(ctx, queries, key, seen) if ctx.settings.method == "claims" else None
    kept = before or {"status": "fired", "until": None, "recovered_on": None}
    return {
        "alert_id": keys.version([ctx.recipe, *key, str(at.day)]),
        "recipe": ctx.recipe,
        "judge_version": ctx.judge_version,
        "date": at.day,
        "app": app,
        "generator": generator,
        "number": number,
        "direction": "down" if down else "up",
        "since": seen.days[0],
        "nights": len(seen.days),
        "nights_before": len(seen.days_before),
        "baseline_mean": round(seen.before, 6),
        "mean": round(seen.level, 6),
        "change": round(seen.change, 6),
        "change_low": round(seen.low, 6),
        "change_high": round(seen.high, 6),
        "between_sd": round(seen.between_sd, 6),
        "noise_sd": round(seen.noise_sd, 6) if number in at.noise else None,
        "p": float(f"{seen.p:.3g}"),
        "p_limit": float(f"{at.rules[number].level:.3g}"),
        "layer": layer,
        "worst_trace_ids": _worst(ctx, queries, at.day, key, layer, down=down),
        "status": kept["status"],
        "until": kept["until"],
        "recovered_on": kept["recovered_on"],
        "announced_at": kept.get("announced_at"),
        "sent_at": kept.get("sent_at"),
        "sent": kept.get("sent", []),
    }


def _series(ctx: Context, queries: Queries, days: Sequence[date]) -> dict[Key, list[Night]]:
    """The nights with enough traces, for each watched number. Numbers without such nights are left out."""
    relations = {table.name: _parts(ctx, table, days) for table in WATCHED}
    rows = pl.DataFrame(queries.run("alerts/alert_nights", relations)).filter(
        pl.col("n") >= ctx.config.alerts.least_traces, pl.col("number").is_in(list(ctx.config.alerts.numbers))
    )
    by_number = groupby(rows.rows(named=True), key=_key)
    return {key: [_as_night(r) for r in nights] for key, nights in by_number if ctx.scope.takes(key[0])}


def _as_night(row: Row) -> Night:
    """A row of `alert_nights.sql`."""
    se = None if row["low"] is None else (row["high"] - row["low"]) / 2 / Z
    return Night(row["date"], row["n"], row["mean"], se)


def _key(row: Row) -> Key:
    return row["app"], row["generator"], row["number"]


def _parts(ctx: Context, table: Table, days: Sequence[date]) -> list[Part]:
    return [part for day in days for part in ctx.lake.parts(table, ctx.recipe, str(day))]


def _layer(ctx: Context, queries: Queries, key: Key, seen: Change) -> str | None:
    relations = {NIGHTLY_TRIAD.name: _parts(ctx, NIGHTLY_TRIAD, [*seen.days_before, *seen.days])}
    params = {"app": key[0], "generator": key[1], "days": list(seen.days), "days_before": list(seen.days_before)}
    counts = pl.DataFrame(queries.run("alerts/alert_layers", relations, params))
    before, last = (dict(counts.select("diagnosis", name).iter_rows()) for name in ("n_before", "n"))
    return likely_layer(before, last, down=seen.change < 0)


def _worst(ctx: Context, queries: Queries, day: date, key: Key, layer: str | None, *, down: bool) -> list[str]:
    params = {"app": key[0], "generator": key[1], "number": key[2], "layer": layer, "most": WORST}
    params |= {"direction": "down" if down else "up", "extractor_version": ctx.extractor.version}
    relations = {
        TRACE_SCORES.name: ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(day)),
        GRADES.name: ctx.lake.parts(GRADES, ctx.grader.version, str(day)) if ctx.grader else [],
    }
    return pl.DataFrame(queries.run("alerts/alert_traces", relations, params))["trace_id"].to_list()


def _noise(ctx: Context) -> dict[str, float]:
    """Standard deviation of one trace's number due to the judges' noise, as measured by `leadline noise`, by number.

    The latest measurement of each judge counts. Judges of a cascade err independently, so their variances are added.
    """
    latest = (
        ctx.lake.frame(JUDGE_NOISE)
        .filter(pl.col("recipe") == ctx.recipe, pl.col("trace_sd").is_not_null())
        .sort("measured_at")
        .unique(["number", "judge_version"], keep="last", maintain_order=True)
    )
    return dict(latest.group_by("number").agg((pl.col("trace_sd") ** 2).sum().sqrt()).iter_rows())
