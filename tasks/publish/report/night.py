"""What the night page shows, gathered from the nightly tables: numbers, trends, counts, and the worst traces."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby, pairwise
from typing import Any

from markupsafe import Markup

from tasks.core.errors import LeadlineError
from tasks.core.grades import GRADES, RANGES
from tasks.publish.report import charts, waterfall
from tasks.publish.report.pages import words
from tasks.publish.report.reader import Reader, select
from tasks.publish.report.text import count, listed, number
from tasks.publish.report.traces import load
from tasks.publish.report.views import Claim, Row, Trace

LABELS = ("supported", "partially_supported", "unsupported", "contradicted", "abstained", "unjudged", "na")
DIAGNOSES = ("healthy", "prompt", "generator", "retrieval", "none")
OUTCOMES = ("hit", "cited_another", "cited_nothing", "retrieved_not_cited", "not_retrieved")
CONFUSED_EACH = 5  # pairs of sources of each app and generator
WORST = 8  # rows in each list of worst traces
MISUSES_EACH = 3  # representative misuses of each app and generator
REFUSED = 50  # rows that are listed one by one


@dataclass(frozen=True, slots=True)
class Metric:
    """A nightly number: its name in `metrics.sql`, its title, its largest value and the digits it is shown with."""

    name: str
    title: str
    top: float
    digits: int


_RELEVANCE = (
    Metric("context_relevance", "Context relevance", 1, 2),
    Metric("answer_relevance", "Answer relevance", 1, 2),
    Metric("answerability", "Answerability", 1, 2),
)
METRICS = {  # by a recipe's method; its main number first
    "claims": (
        Metric("groundedness", "Groundedness", 100, 1),
        Metric("faithfulness", "Faithfulness", 1, 2),
        Metric("utilization", "Utilization", 1, 2),
        *_RELEVANCE,
    ),
    "citations": (Metric("citation_groundedness", "Citation groundedness", 1, 2), *_RELEVANCE),
}
SCORES = {"claims": "groundedness_score", "citations": "citation_groundedness"}  # of one trace
NO_TREND = ("faithfulness",)  # it would say the same again


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart in the page; `summary` says in words what it shows."""

    title: str
    svg: Markup
    summary: str


@dataclass(frozen=True, slots=True)
class Misuse:
    """A misused claim that stands for others, and the trace that it is from."""

    trace: Trace
    claim: Claim


def recipe_row(reader: Reader, recipe: str) -> Row:
    """The recipe with its judge.

    Raises:
        LeadlineError: No such recipe.
    """
    rows = select(reader, "recipe", recipe=recipe)
    if not rows:
        raise LeadlineError(f"recipe {recipe!r} is not in the table `recipes`. Run the nightly flow with it first.")
    return rows[0]


def method_of(recipe: Row) -> str:
    """The recipe's method; recipes from before there were several have none in their definition."""
    method: str = json.loads(recipe["definition"]).get("method", "claims")
    return method


def triad_thresholds(recipe: Row) -> Mapping[str, float]:
    """From where on the triad's questions are answered with yes, as far as the recipe's definition tells."""
    triad = json.loads(recipe["definition"]).get("triad")
    return triad if isinstance(triad, dict) else {}


def gather(reader: Reader, recipe: Row, night: date, listing: Sequence[Row]) -> dict[str, Any]:
    """Everything that the night page's template needs.

    Args:
        recipe: See `recipe_row`.
        listing: Traces that get a page.
    """
    scope: dict[str, object] = {"recipe": recipe["recipe"], "night": night}
    metrics = select(reader, "metrics", **scope)
    claims = select(reader, "claim_counts", **scope)
    corrected = select(reader, "corrected", **scope)
    tonight = [m for m in metrics if m["date"] == night and m["recipe"] == recipe["recipe"]]
    groups = _groups(tonight, claims, corrected)
    run = next(iter(select(reader, "run", **scope)), None)
    method = method_of(recipe)
    own = f"{recipe['recipe_name']}: "  # before the names of stages, where the run had several recipes
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
        "alerts": select(reader, "alerts", **scope),
        "repeats": select(reader, "repeats", **scope),
        "triad": _triad(select(reader, "triad", **scope)),
        "waterfall": waterfall.night(select(reader, "waterfall", **scope)),
        "passes_from": {s: number(t, waterfall.digits(t)) for s, t in waterfall.thresholds(recipe).items()},
        "claims": [{**c, "chart": _claims_chart(c)} for c in claims],
        "languages": select(reader, "languages", **scope),
        "patterns": select(reader, "patterns", **scope),
        "grades": _grades(select(reader, "grades", **scope)),
        "ranges": {grade: RANGES[grade] for grade in GRADES},
        "passes": select(reader, "segment_counts", **scope),
        "outcomes": OUTCOMES,
        "grace": [{**g, "chart": _grace_chart(g)} for g in select(reader, "grace", **scope)],
        "confused": select(reader, "grace_confusion", **scope, each=CONFUSED_EACH),
        "misuses": _misuses(reader, recipe, night),
        "redacted": select(reader, "redacted", recipe=recipe["recipe"], night=night)[0]["n"],
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
    """Rows of the night that were refused: how many for which reason, and where the first of them stand."""
    return {
        "quarantine": select(reader, "quarantine", night=night),
        "refused": select(reader, "refused", night=night, limit=REFUSED),
    }


def summary(recipe: Row, night: date, page: Mapping[str, Any]) -> dict[str, Any]:
    """What the list of nights says of a night; kept as JSON beside its page."""
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
        "claims_judged": sum(c["judged"] for c in page["claims"]),
        "claims_misused": sum(c["misused"] for c in page["claims"]),
        "quarantined": sum(q["n"] for q in page["quarantine"]),
        "groups": [
            {"app": g["app"], "generator": g["generator"]}
            | {k: (g["metrics"].get(main.name) or {}).get(k) for k in ("mean", "low", "high", "n_scored")}
            for g in page["groups"]
        ],
    }


def _groups(tonight: Sequence[Row], claims: Sequence[Row], corrected: Sequence[Row]) -> list[dict[str, Any]]:
    counts = {(c["app"], c["generator"]): c for c in claims}
    by_people = {(c["app"], c["generator"], c["metric"]): c for c in corrected}
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tonight:
        at = (row["app"], row["generator"])
        group = groups.setdefault(at, {"app": at[0], "generator": at[1], "n": row["n"], "metrics": {}})
        group["metrics"][row["metric"]] = {**row, "corrected": by_people.get((*at, row["metric"]))}
        group["claims"] = counts.get(at)
    return list(groups.values())


def _trends(metrics: Sequence[Row], known: Sequence[Metric]) -> list[dict[str, Any]]:
    """One entry per app: a chart per number, a line per generator and recipe, the days of another judge marked."""
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
    """What tells the lines apart: the generator, and the judge or else the recipe where there are several."""
    judges = {p["recipe"]: p["judge_version"] for p in points}
    if len(judges) == 1:
        return [generator for generator, _ in lines]
    by_judge = len(set(judges.values())) == len(judges)
    called = _called(points)
    return [f"{gen} (judge {called[judges[r]]})" if by_judge else f"{gen} (recipe {r})" for gen, r in lines]


def _called(points: Sequence[Row]) -> dict[str, str]:
    """Judges by version: their names, with the version where several have one name or the name is not known."""
    names = {p["judge_version"]: p["judge_name"] for p in points}
    several = {name for name, n in Counter(names.values()).items() if n > 1}
    return {v: v if name is None else f"{name} {v}" if name in several else name for v, name in names.items()}


def _changes(points: Sequence[Row]) -> list[tuple[date, str]]:
    """The first night of each judge that counted in the place of another one, with what people call it."""
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
    said = []
    for i, name in enumerate(names):
        means = [number(p.mean, metric.digits) for p in points if p.series == i and p.mean is not None]
        nights = f"{means[0]} to {means[-1]} over {len(means)} nights" if len(means) > 1 else "".join(means)
        said.append(f"{name}: {nights or 'n/a'}")
    return Chart(
        metric.title, charts.trend(points, metric.top, changed), f"{metric.title} by night. " + "; ".join(said)
    )


def _grades(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """By app and generator, each grade's row."""
    found = groupby(rows, key=lambda r: (r["app"], r["generator"]))
    return [{"app": a, "generator": g, "by": {r["grade"]: r for r in own}} for (a, g), own in found]


def _triad(rows: Sequence[Row]) -> list[dict[str, Any]]:
    groups = []
    for (app, generator), found in groupby(rows, key=lambda r: (r["app"], r["generator"])):
        by = {r["diagnosis"]: r for r in found}
        parts = {d: by[d]["n"] if d in by else 0 for d in DIAGNOSES}
        said = listed([f"{count(n)} {'without a diagnosis' if d == 'none' else d}" for d, n in parts.items() if n])
        chart = Chart("Diagnoses", charts.bar(parts), f"Diagnoses of {app}, {generator}: {said or 'no traces'}.")
        groups.append({"app": app, "generator": generator, "by": by, "chart": chart})
    return groups


def _claims_chart(row: Row) -> Chart:
    parts = {label: row[label] for label in LABELS}
    said = listed([f"{count(n)} {label.replace('_', ' ')}" for label, n in parts.items() if n])
    words = f"Labels of the claims of {row['app']}, {row['generator']}: {said or 'no claims'}."
    return Chart("Labels", charts.bar(parts), words)


def _grace_chart(row: Row) -> Chart:
    parts = {outcome: row[outcome] for outcome in OUTCOMES}
    said = listed([f"{count(n)} {words(outcome)}" for outcome, n in parts.items() if n])
    text = f"Whether {row['app']}, {row['generator']}, cites the right source: {said or 'nothing is annotated'}."
    return Chart("Right sources", charts.bar(parts), text)


def _misuses(reader: Reader, recipe: Row, night: date) -> list[Misuse]:
    chosen = select(
        reader,
        "misuses",
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
