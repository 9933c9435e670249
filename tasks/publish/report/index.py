"""The list of nights: a summary of each night, changes since the night before, and a trend per app."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from tasks.publish.report import charts
from tasks.publish.report.charts import Chart, Point
from tasks.publish.report.text import listed

SUMMARY = "night.json"
Night = dict[str, Any]
TREND = timedelta(days=89)  # days in a trend before its latest night (sql/report/night/metrics.sql)


def summaries(out: Path) -> list[Night]:
    """Read the summaries of all nights in `out`, latest first; within a night, the first recipe comes first.

    `changed` of each summary lists the changes since the previous night of the recipe with this name.
    """
    files = [*out.glob(f"[0-9]*/{SUMMARY}"), *out.glob(f"[0-9]*/*/{SUMMARY}")]
    found = [
        {**json.loads(f.read_text(encoding="utf-8")), "folder": f.parent.relative_to(out).as_posix()} for f in files
    ]
    found.sort(key=lambda n: ("/" in n["folder"], n["folder"]))
    found.sort(key=lambda n: str(n["date"]))
    before: dict[str, Night] = {}
    for night in found:
        earlier = before.get(night["recipe_name"])
        night["changed"] = changes(earlier, night) if earlier else []
        before[night["recipe_name"]] = night
    return sorted(found, key=lambda n: str(n["date"]), reverse=True)


def latest(nights: Sequence[Night], recipe_name: str, before: date) -> Night | None:
    """The latest night of a recipe before a date.

    Args:
        nights: See `summaries`.
    """
    return next((n for n in nights if n["recipe_name"] == recipe_name and n["date"] < before.isoformat()), None)


def changes(before: Night, night: Night) -> list[str]:
    """Describe changes of the judge, recipe, generators, prompts and retrievers since the night before."""
    found = []
    if before["judge_version"] != night["judge_version"]:
        found.append(f"judge {night['judge_name']} (before: {before['judge_name']})")
    elif before["recipe"] != night["recipe"]:
        found.append("settings of the recipe")
    earlier = {(s["app"], s["generator"]): s for s in before["setups"]}
    apps = {app for app, _ in earlier}
    for now in night["setups"]:
        then = earlier.get((now["app"], now["generator"]))
        if then is None:
            found += [f"new generator {now['generator']} of {now['app']}"] if now["app"] in apps else []
            continue
        for what in ("prompt", "retriever"):
            names, old = now[f"{what}s"], then[f"{what}s"]
            if old and names != old:
                found.append(f"{what} of {now['generator']} {listed(names) or 'not named'} (before: {listed(old)})")
    return found


def trends(nights: Sequence[Night]) -> list[dict[str, Any]]:
    """Chart the main number of the first recipe, for each app with at least two nights: one line per generator.

    Args:
        nights: See `summaries`.
    """
    own = [n for n in reversed(nights) if "/" not in n["folder"]]
    recent = [n for n in own if date.fromisoformat(n["date"]) >= date.fromisoformat(own[-1]["date"]) - TREND]
    rows = [{**g, "night": n} for n in recent for g in n["groups"]]
    found = []
    for app, its in groupby(sorted(rows, key=lambda r: str(r["app"])), key=lambda r: r["app"]):
        points = list(its)
        if len({r["night"]["date"] for r in points}) > 1:
            found.append(_trend(str(app), points))
    return found


def _trend(app: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Points of different judges or numbers are never joined by a line."""
    lines = list(dict.fromkeys((r["generator"], r["night"]["judge_version"], r["night"]["metric"]) for r in rows))
    latest = rows[-1]["night"]
    points = [
        Point(
            lines.index((r["generator"], r["night"]["judge_version"], r["night"]["metric"])),
            date.fromisoformat(r["night"]["date"]),
            r["mean"],
            r["low"],
            r["high"],
        )
        for r in rows
        if r["night"]["metric"] == latest["metric"]
    ]
    marks = sorted({date.fromisoformat(r["night"]["date"]) for r in rows if r["night"]["changed"]})
    names = [generator for generator, *_ in lines]
    summary = f"{latest['metric']} of {app} by night. {charts.in_words(points, names, latest['digits'])}"
    top = 100.0 if latest["metric"] == "Groundedness" else 1.0
    legend = [(charts.swatch(i), name) for i, name in enumerate(names)]
    return {
        "app": app,
        "chart": Chart(app, charts.trend(points, top, marks), summary),
        "legend": legend,
        "marks": marks,
    }
