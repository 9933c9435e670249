"""Gather the data of the night page from the nightly tables: numbers, trends, counts, and the worst traces."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby, pairwise
from typing import Any

from tasks.core.errors import LeadlineError
from tasks.core.grades import GRADES, RANGES
from tasks.publish.report import charts
from tasks.publish.report.charts import Chart
from tasks.publish.report.night import waterfall
from tasks.publish.report.night.opening import READ
from tasks.publish.report.reader import Reader, by_generator, select
from tasks.publish.report.text import number
from tasks.publish.report.traces import load
from tasks.publish.report.views import Claim, Row, Trace

LABELS = ("supported", "partially_supported", "unsupported", "contradicted", "abstained", "unjudged", "na")
COLUMNS = {"partially_supported": "partial"}  # names in `nightly_groundedness`, if different
DIAGNOSES = ("healthy", "declined", "prompt", "generator", "retrieval", "none")
OUTCOMES = ("hit", "cited_another", "cited_nothing", "retrieved_not_cited", "not_retrieved")
CONFUSED_EACH = 5  # pairs of sources per app and generator
WORST = 8  # rows in each list of worst traces
MISUSES_EACH = 3  # representative misuses per app and generator
REFUSED = 50  # refused rows to list


@dataclass(frozen=True, slots=True)
class Metric:
    """A nightly number: name in `metrics.sql`, title, largest value, and decimals to show."""

    name: str
    title: str
    top: float
    digits: int


_RELEVANCE = (
    Metric("context_relevance", "Context relevance", 1, 2),
    Metric("answer_relevance", "Answer relevance", 1, 2),
    Metric("answerability", "Answerability", 1, 2),
)
METRICS = {  # by method of the recipe, main number first
    "claims": (
        Metric("groundedness", "Groundedness", 100, 1),
        Metric("faithfulness", "Faithfulness", 1, 2),
        Metric("utilization", "Utilization", 1, 2),
        *_RELEVANCE,
    ),
    "citations": (Metric("citation_groundedness", "Citation groundedness", 1, 2), *_RELEVANCE),
}
SCORES = {"claims": "groundedness_score", "citations": "citation_groundedness"}  # of one trace
NO_TREND = ("faithfulness",)  # its chart would repeat groundedness


@dataclass(frozen=True, slots=True)
class Misuse:
    """A representative misused claim and its trace."""

    trace: Trace
    claim: Claim


def recipe_row(reader: Reader, recipe: str) -> Row:
    """Return the recipe with its judge, and with the definition as a dictionary.

    Raises:
        LeadlineError: There is no such recipe.
    """
    rows = select(reader, "night/recipe", recipe=recipe)
    if not rows:
        raise LeadlineError(f"recipe {recipe!r} is not in the table `recipes`. Run the nightly flow with it first.")
    return {**rows[0], "definition": json.loads(rows[0]["definition"])}


def method_of(recipe: Row) -> str:
    """The recipe's method. Definitions of old recipes lack the key; their method is `claims`."""
    return str(recipe["definition"].get("method", "claims"))


def thresholds(recipe: Row, check: str) -> Mapping[str, float]:
    """Thresholds of the triad's questions or the waterfall's stages; empty for old recipes."""
    found = recipe["definition"].get(check)
    return found if isinstance(found, dict) else {}


def gather(reader: Reader, recipe: Row, night: date, listing: Sequence[Row]) -> dict[str, Any]:
    """Gather all values for the template of the night page.

    Args:
        recipe: See `recipe_row`.
        listing: Traces that have a page.
    """
    scope: dict[str, object] = {"recipe": recipe["recipe"], "night": night}

    def nightly(table: str) -> list[dict[str, Any]]:
        return select(reader, "night/nightly", table=f"nightly_{table}", **scope)

    metrics = select(reader, "night/metrics", **scope)
    claims = [_claims(row) for row in nightly("groundedness")]
    corrected = [_mean(row, "corrected") for row in nightly("corrected")]
    tonight = [m for m in metrics if m["date"] == night and m["recipe"] == recipe["recipe"]]
    groups = _groups(tonight, claims, corrected)
    run = next(iter(select(reader, "night/run", **scope)), None)
    method = method_of(recipe)
    own = f"{recipe['recipe_name']}: "  # prefix of stage names if the run had several recipes
    score = SCORES[method]
    return {
        "method": method,
        "metrics": METRICS[method],
        "groups": groups,
        "corrected": corrected,
        "total": sum(g["n"] for g in groups),
        "run": run,
        "stages": {s["stage"].removeprefix(own): s for s in (run["stages"] or ())} if run else {},
        "trends": _trends(metrics, METRICS[method]),
        "alerts": select(reader, "night/alerts", **scope),
        "setups": select(reader, "night/setups", **scope),
        "to_read": select(reader, "night/to_read", **scope, limit=READ),
        "history": [m for m in metrics if m["recipe"] == recipe["recipe"] and m["metric"] == METRICS[method][0].name],
        "repeats": [r for r in nightly("repeats") if r["number"] != "faithfulness" and r["questions_repeated"]],
        "sessions": nightly("sessions"),
        "diagnoses": DIAGNOSES,
        "triad": _triad(nightly("triad")),
        "waterfall": waterfall.night(nightly("waterfall")),
        "calibrated": waterfall.calibrated(thresholds(recipe, "waterfall")),
        "passes_from": {s: number(t, waterfall.digits(t)) for s, t in thresholds(recipe, "waterfall").items()},
        "claims": claims,
        "slices": _slices(nightly("slices")),
        "patterns": nightly("patterns"),
        "grades": by_generator([_mean(row, "grade") for row in nightly("grades")], "grade"),
        "ranges": {grade: RANGES[grade] for grade in GRADES},
        "passes": nightly("citations"),
        "outcomes": OUTCOMES,
        "grace": [_grace(row) for row in nightly("grace")],
        "confused": select(reader, "night/grace_confusion", **scope, each=CONFUSED_EACH),
        "misuses": _misuses(reader, recipe, night),
        "redacted": select(reader, "night/redacted", recipe=recipe["recipe"], night=night)[0]["n"],
        "lowest": sorted(
            (r for r in listing if r[score] is not None),
            key=lambda r: (r[score], -r["claims_misused"]),
        )[:WORST],
        "most_misused": sorted(
            (r for r in listing if r["claims_misused"]),
            key=lambda r: (-r["claims_misused"], r[score] or 0),
        )[:WORST],
    }


def refused(reader: Reader, night: date) -> dict[str, Sequence[Row]]:
    """Refused rows of the night: counts by reason, and the locations of the first rows."""
    return {
        "quarantine": select(reader, "night/quarantine", night=night),
        "refused": select(reader, "night/refused", night=night, limit=REFUSED),
    }


def summary(recipe: Row, night: date, page: Mapping[str, Any]) -> dict[str, Any]:
    """Summarize a night for the list of nights; stored as JSON beside the night's page."""
    main = METRICS[page["method"]][0]
    return {
        "date": night.isoformat(),
        "recipe": recipe["recipe"],
        "recipe_name": recipe["recipe_name"],
        "judge_name": recipe["judge_name"],
        "judge_version": recipe["judge_version"],
        "metric": main.title,
        "digits": main.digits,
        "traces": page["total"],
        "claims_judged": sum(c["claims_judged"] for c in page["claims"]),
        "claims_misused": sum(c["claims_misused"] for c in page["claims"]),
        "alerts": sum(bool(alert["fired"]) for alert in page["alerts"]),
        "setups": page["setups"],
        "quarantined": sum(q["n"] for q in page["quarantine"]),
        "groups": [
            {"app": g["app"], "generator": g["generator"]}
            | {k: (g["metrics"].get(main.name) or {}).get(k) for k in ("mean", "low", "high", "n_scored")}
            for g in page["groups"]
        ],
    }


def _groups(tonight: Sequence[Row], claims: Sequence[Row], corrected: Sequence[Row]) -> list[dict[str, Any]]:
    counts = {(c["app"], c["generator"]): c for c in claims}
    by_people = {(c["app"], c["generator"], c["number"]): c for c in corrected}
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tonight:
        at = (row["app"], row["generator"])
        group = groups.setdefault(at, {"app": at[0], "generator": at[1], "n": row["n"], "metrics": {}})
        group["metrics"][row["metric"]] = {**row, "corrected": by_people.get((*at, row["metric"]))}
        group["claims"] = counts.get(at)
    return list(groups.values())


def _trends(metrics: Sequence[Row], known: Sequence[Metric]) -> list[dict[str, Any]]:
    """Trends per app: a chart per number, with a line per generator and recipe. Changes of the judge are marked."""
    trends = []
    for app, rows in groupby(metrics, key=lambda m: m["app"]):
        points = list(rows)
        lines = list(dict.fromkeys((p["generator"], p["recipe"]) for p in points))
        names = _names(points, lines)
        changed = _changes(points)
        table: defaultdict[date, dict[tuple[int, str], Row]] = defaultdict(dict)
        for p in points:
            table[p["date"]][lines.index((p["generator"], p["recipe"])), p["metric"]] = p
        shown = [m for m in known if m.name not in NO_TREND]
        trends.append({
            "app": app,
            "legend": [(charts.swatch(i), name) for i, name in enumerate(names)],
            "names": names,
            "changed": changed,
            "charts": [c for m in shown if (c := _trend(m, points, lines, names, [night for night, _ in changed]))],
            "metrics": shown,
            "table": dict(sorted(table.items(), reverse=True)),
        })  # fmt: skip
    return trends


def _names(points: Sequence[Row], lines: Sequence[tuple[str, str]]) -> list[str]:
    """Unique names of the lines: the generator, plus the judge or recipe if the generator has several lines."""
    judges = {p["recipe"]: p["judge_version"] for p in points}
    if len(judges) == 1:
        return [generator for generator, _ in lines]
    by_judge = len(set(judges.values())) == len(judges)
    called = _called(points)
    return [f"{gen} (judge {called[judges[r]]})" if by_judge else f"{gen} (recipe {r})" for gen, r in lines]


def _called(points: Sequence[Row]) -> dict[str, str]:
    """Display names of judges by version. The version is added if a name is ambiguous or unknown."""
    names = {p["judge_version"]: p["judge_name"] for p in points}
    several = {name for name, n in Counter(names.values()).items() if n > 1}
    return {v: v if name is None else f"{name} {v}" if name in several else name for v, name in names.items()}


def _changes(points: Sequence[Row]) -> list[tuple[date, str]]:
    """The nights on which another judge began to count, with its display name."""
    counted = dict(sorted({p["date"]: p["judge_version"] for p in points if p["counts"]}.items()))
    called = _called(points)
    return [(night, called[judge]) for (_, before), (night, judge) in pairwise(counted.items()) if judge != before]


def _trend(
    metric: Metric, rows: Sequence[Row], lines: list[tuple[str, str]], names: list[str], changed: Sequence[date]
) -> Chart | None:
    points = [
        charts.Point(lines.index((r["generator"], r["recipe"])), r["date"], r["mean"], r["low"], r["high"])
        for r in rows
        if r["metric"] == metric.name
    ]
    if not points:
        return None
    summary = f"{metric.title} by night. {charts.in_words(points, names, metric.digits)}"
    return Chart(metric.title, charts.trend(points, metric.top, changed), summary)


def _slices(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows by slice and app, most frequent value first; the row of all rarer values comes last.

    Each row has the explorer filter for its traces, except the row of rarer values.
    """
    found = []
    ordered = sorted(rows, key=lambda r: (r["slice"].startswith("tags."), r["slice"], r["app"]))
    for (name, app), own in groupby(ordered, key=lambda r: (r["slice"], r["app"])):
        its = list(own)
        counts: Counter[str | None] = Counter()
        for r in its:
            counts[r["value"]] += r["n"]
        its.sort(key=lambda r: (r["value"] is None, -counts[r["value"]], str(r["value"]), r["generator"]))
        tag = name.removeprefix("tags.") if name.startswith("tags.") else None
        facet = "tag" if tag is not None else {"prompt_version": "prompt"}.get(name, name)
        title = f"Tag {tag}" if tag is not None else name.replace("_", " ").capitalize()
        shown = [
            {**_mean(r, "score"), "filter": {facet: r["value"] if tag is None else f"{tag}: {r['value']}"}} for r in its
        ]
        found.append({"title": title, "app": app, "values": [v for v in counts if v is not None], "rows": shown})
    return found


def _mean(row: Row, name: str) -> Row:
    """Copy `<name>_mean`, `<name>_low` and `<name>_high` of a row to `mean`, `low` and `high`."""
    return {**row, **{column: row[f"{name}_{column}"] for column in ("mean", "low", "high")}}


def _triad(rows: Sequence[Row]) -> list[dict[str, Any]]:
    groups = by_generator(rows, "diagnosis")
    for group in groups:
        parts = {d: group["by"][d]["n"] if d in group["by"] else 0 for d in DIAGNOSES}
        subject = f"Diagnoses of {group['app']}, {group['generator']}"
        group["chart"] = charts.stacked("Diagnoses", parts, subject, "no traces")
    return groups


def _claims(row: Row) -> dict[str, Any]:
    """Add counts of claims by label, and a bar chart of them."""
    labels = {label: row[f"claims_{COLUMNS.get(label, label)}"] for label in LABELS[:-1]}
    labels["na"] = row["claims_total"] - row["claims_judged"] - labels["abstained"] - labels["unjudged"]
    subject = f"Labels of the claims of {row['app']}, {row['generator']}"
    return {**row, "labels": labels, "chart": charts.stacked("Labels", labels, subject, "no claims")}


def _grace(row: Row) -> dict[str, Any]:
    parts = {outcome: row["hits" if outcome == "hit" else outcome] for outcome in OUTCOMES}
    subject = f"Whether {row['app']}, {row['generator']}, cites the right source"
    return {**row, "parts": parts, "chart": charts.stacked("Right sources", parts, subject, "nothing is annotated")}


def _misuses(reader: Reader, recipe: Row, night: date) -> list[Misuse]:
    chosen = select(
        reader,
        "night/misuses",
        recipe=recipe["recipe"],
        night=night,
        extractor_version=recipe["extractor_version"],
        each=MISUSES_EACH,
    )
    traces = {t.row["trace_id"]: t for t in load(reader, recipe, night, [m["trace_id"] for m in chosen])}
    return [
        Misuse(traces[m["trace_id"]], claim)
        for m in chosen
        if m["trace_id"] in traces
        for claim in traces[m["trace_id"]].claims
        if claim.ordinal == m["ordinal"]
    ]
