"""Publish alerts: an artifact and an event in Prefect, and messages to the places that the config names.

A message that can't be sent does not fail the night; it is noted, and the next run tries again. Messages contain only
ids, counts and numbers. Left out: finding alerts (`tasks/scoring/alerts.py`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flows.console import counted
from flows.runtime import notify
from tasks.core.config import Alerts
from tasks.publish import publish
from tasks.publish.report.night.opening import Line, digits_of, in_words, title
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.alerts import alerts, write

STAGE = "notify"
Row = dict[str, Any]
Announce = Callable[[str, str, str, Mapping[str, Any]], None]  # alert id, title, Markdown, payload
Send = Callable[[str, str, str], str | None]


def notify_all(contexts: Sequence[Context], announce: Announce | None, send: Send = notify.send) -> StageResult | None:
    """Announce new alerts in Prefect, and send messages that were not sent yet.

    Args:
        announce: Shows an alert in Prefect. None without Prefect; alerts are then announced by a later run.
        send: See `notify.send`.

    Returns:
        As `computed`, the number of changed alerts; as notes, failures. None if there is nothing to report.
    """
    changes, notes = 0, list[str]()
    for ctx in contexts:
        if ctx.shadow:
            continue
        rows = alerts(ctx)
        after, problems = _announced(ctx, rows, announce) if announce else (rows, [])
        after, more = _sent(ctx, after, send)
        notes += problems + more
        changed = [(a, b) for a, b in zip(rows, after, strict=True) if a != b]
        for night in {b["date"] for _, b in changed}:
            write(ctx, night, [r for r in after if r["date"] == night])
        changes += len(changed)
    return StageResult(STAGE, computed=changes, notes=tuple(notes)) if changes or notes else None


def markdown(row: Mapping[str, Any], recipe: str, report_url: str | None) -> str:
    """Format an alert with all details as Markdown."""
    digits = digits_of(row)
    low, high = (f"{row[c]:+.{digits}f}" for c in ("change_low", "change_high"))
    nights = "night" if row["nights"] == 1 else f"{row['nights']} nights"
    lines = [
        f"**{_plain(title(row))}**",
        "",
        f"- recipe {_plain(recipe)} `{row['recipe']}`, judge `{row['judge_version']}`, night of {row['date']}",
        f"- change {row['change']:+.{digits}f}, 95% interval {low} to {high}: the last {nights}, since {row['since']}, "
        f"against {row['nights_before']} nights before",
        f"- likely layer: {row['layer'] or 'none stands out'}",
        f"- {_noise(row, digits)}",
    ]
    if row["status"] == "recovered":
        lines.append(f"- returned: seen on {row['recovered_on']}, the last night of it was {row['until']}")
    if row["worst_trace_ids"]:
        lines.append("- worst traces: " + ", ".join(_plain(t) for t in row["worst_trace_ids"]))
    if report_url:
        lines.append(f"- report: {report_url.rstrip('/')}/{row['date']}/index.html")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Escape Markdown and HTML, since names and ids come from logs."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!~])", r"\\\1", " ".join(text.split()))


def _noise(row: Mapping[str, Any], digits: int) -> str:
    if row["noise_sd"] is None:
        return "the judge's own noise in this number was not measured (`leadline noise`)"
    return f"the judge's own noise alone would move it by {row['noise_sd']:.{digits}f} (standard deviation)"


def _announced(ctx: Context, rows: Sequence[Row], announce: Announce) -> tuple[list[Row], list[str]]:
    """Announce alerts in Prefect and mark their rows. Rows that Prefect refused stay unmarked."""
    after, notes = [], list[str]()
    for row in rows:
        if row["announced_at"] is not None:
            after.append(row)
            continue
        try:
            announce(row["alert_id"], title(row), *_details(ctx, row))
        except Exception as error:
            notes.append(
                f"Prefect did not take alert {row['alert_id']} ({type(error).__name__}); tried again next run."
            )
            after.append(row)
        else:
            after.append({**row, "announced_at": datetime.now(UTC)})
    return after, notes


def _details(ctx: Context, row: Row) -> tuple[str, dict[str, Any]]:
    """Return the Markdown of an alert's artifact, and the payload of its event."""
    name = ctx.settings.name
    shown = ("date", "since", "direction", "number", "app", "generator", "layer", "status")
    counts = (
        "nights", "nights_before", "baseline_mean", "mean", "change", "change_low", "change_high", "noise_sd", "p",
    )  # fmt: skip
    return markdown(row, name, ctx.config.alerts.report_url), {
        **{c: None if row[c] is None else str(row[c]) for c in shown},
        **{c: row[c] for c in counts},
        "recipe": row["recipe"],
        "recipe_name": name,
        "judge_version": row["judge_version"],
        "worst_trace_ids": row["worst_trace_ids"],
    }


def _sent(ctx: Context, rows: Sequence[Row], send: Send) -> tuple[list[Row], list[str]]:
    """Send due messages to each place and mark the rows of their alerts."""
    settings, notes = ctx.config.alerts, list[str]()
    oldest = ctx.today - timedelta(days=settings.notify_days)
    after = list(rows)
    for place in settings.notify:
        due = [
            (i, status)
            for status in ("fired", *(["recovered"] if settings.recoveries else []))
            for i, row in enumerate(after)
            if _due(row, place, status) and row["date" if status == "fired" else "recovered_on"] >= oldest
        ]
        if not due:
            continue
        rows_due = [(after[i], status) for i, status in due]
        night = publish.latest_night(ctx, {row["date"] for row, _ in rows_due})
        message = _message(settings, ctx.settings.name, rows_due, night["opening"] if night else ())
        if problem := send(place, *message):
            notes.append(
                f"{counted(len(due), 'alert')} could not be sent to {place}: {problem}. The next run tries again."
            )
            continue
        now = datetime.now(UTC)
        for i, status in due:
            after[i] = {**after[i], "sent": [*after[i]["sent"], {"place": place, "status": status, "at": now}]}
    return [_complete(row, settings) for row in after], notes


def _due(row: Row, place: str, status: str) -> bool:
    """Whether a place still has to get an alert, or the end of an alert that it has got."""
    received = {s["status"] for s in row["sent"] if s["place"] == place}
    if status == "fired":
        return "fired" not in received and row["status"] == "fired"  # alerts that have ended are not sent
    return row["status"] == "recovered" and received == {"fired"}


def _complete(row: Row, settings: Alerts) -> Row:
    if row["sent_at"] is not None or not settings.notify:
        return row
    received = {s["place"] for s in row["sent"] if s["status"] == "fired"}
    return {**row, "sent_at": datetime.now(UTC)} if received.issuperset(settings.notify) else row


def _message(settings: Alerts, recipe: str, due: Sequence[tuple[Row, str]], opening: Sequence[Line]) -> tuple[str, str]:
    """Return title and Markdown body of one message about several alerts, with the latest night's opening lines."""
    titles: Mapping[str, Callable[[Row], str]] = {"fired": title, "recovered": lambda r: f"Back to normal: {title(r)}"}
    (row, status), *more = due
    head = f"Leadline: {titles[status](row)}" + (f", and {counted(len(more), 'alert')} more" if more else "")
    parts = [
        markdown(row, recipe, settings.report_url)
        if status == "fired"
        else f"**{titles[status](row)}**\n\n- reported on {row['date']}; the last night of it was {row['until']}"
        for row, status in due
    ]
    night = "\n".join(f"- {line['about']}: {_plain(in_words(line))}" for line in opening if line["about"] != "changed")
    return head, "\n\n".join(filter(None, [*parts, night]))
