"""Charts of the report, rendered from Vega-Lite to inline SVG.

Colors are CSS variables, so charts adapt to light mode, dark mode and print. An SVG contains no text of the data:
series are numbered, and the page's legend shows their names.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tasks.core.lazy import lazy
from tasks.publish.report.pages import words
from tasks.publish.report.text import count, listed, number

if TYPE_CHECKING:
    import altair as alt
    import vl_convert as vlc
else:
    alt, vlc = lazy("altair"), lazy("vl_convert")

COLORS = 6
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond")
OUTLINES = {  # SVG paths of Vega's shapes, for the legend
    "circle": '<circle cx="13" cy="6" r="3.4"/>',
    "square": '<rect x="10" y="3" width="6" height="6"/>',
    "triangle-up": '<path d="M13 2l4 7h-8z"/>',
    "diamond": '<path d="M13 2l4 4l-4 4l-4-4z"/>',
}
WIDTH, HEIGHT = 236, 128
LOOK = {
    "font": "sans-serif",
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--soft)", "gridColor": "var(--rule)", "domainColor": "var(--rule)",
        "tickColor": "var(--rule)", "labelFontSize": 11, "labelPadding": 5,
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with a `summary` in words."""

    title: str
    svg: Markup
    summary: str


@dataclass(frozen=True, slots=True)
class Point:
    """One night of one series.

    Attributes:
        series: Index of the line, from 0. Each judge version has its own line.
        mean: The value; None leaves a gap.
        low: Lower end of the interval, or None.
        high: Upper end of the interval, or None.
    """

    series: int
    night: date
    mean: float | None
    low: float | None
    high: float | None


def trend(points: Sequence[Point], top: float, marks: Sequence[date] = ()) -> Markup:
    """Draw lines over nights with interval bands.

    Args:
        top: Largest possible value, which is the top of the axis.
        marks: Nights to mark with a vertical line, because the measurement changed on that night.
    """
    nights = sorted({p.night for p in points})
    series = sorted({p.series for p in points})
    first, last = _ms(nights[0]), _ms(nights[-1])
    pad = 0 if last > first else 86_400_000
    rows = [row for s in series for row in _line([p for p in points if p.series == s], nights[0], nights[-1])]
    ticks = [nights[0], nights[len(nights) // 2], nights[-1]] if len(nights) > 4 else [nights[0], nights[-1]]

    def by(channel: type[Any], values: Sequence[Any]) -> Any:  # noqa: ANN401 (altair's channels share no base)
        return channel("s:N", legend=None, scale=alt.Scale(domain=series, range=list(values)))

    x = alt.X(
        "x:T",
        title=None,
        scale=alt.Scale(type="utc", domain=[first - pad, last + pad]),
        axis=alt.Axis(values=sorted({_ms(n) for n in ticks}), format="%-d %b", grid=False, labelFlush=True),
    )
    scale = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(
        values=[0, top / 2, top], format=".1f" if top == 1 else "d", domain=False, ticks=False, minExtent=24
    )
    base = alt.Chart(alt.NamedData("rows")).encode(x=x, color=by(alt.Color, [color(s) for s in series]))
    low, high = alt.Y("low:Q", title=None, scale=scale, axis=axis), alt.Y2("high:Q")
    mean = alt.Y("mean:Q", title=None, scale=scale, axis=axis)
    marked = alt.Chart(alt.NamedData("marks"))
    layers = alt.layer(
        *([marked.mark_rule(color="var(--soft)", strokeDash=[3, 3]).encode(x=x)] if marks else []),
        base.mark_area(opacity=0.13).encode(y=low, y2=high),
        base.mark_rule(opacity=0.4).encode(y=low, y2=high).transform_filter("datum.alone"),
        base.mark_line(strokeWidth=1.8, invalid="break-paths-show-domains").encode(
            y=mean, strokeDash=by(alt.StrokeDash, [DASHES[s % len(DASHES)] for s in series])
        ),
        base.mark_point(filled=True, size=22, opacity=1, invalid="filter").encode(
            y=mean, shape=by(alt.Shape, [SHAPES[s % len(SHAPES)] for s in series])
        ),
    )
    datasets = {"rows": rows, "marks": [{"x": _ms(night)} for night in marks]}
    return _svg(layers.properties(width=WIDTH, height=HEIGHT), datasets)


def in_words(points: Sequence[Point], names: Sequence[str], digits: int) -> str:
    """Describe a trend in words: first and last value of each line, and the number of nights with a value."""
    lines = []
    for i, name in enumerate(names):
        means = [number(p.mean, digits) for p in points if p.series == i and p.mean is not None]
        nights = f"{means[0]} to {means[-1]} over {len(means)} nights" if len(means) > 1 else "".join(means)
        lines.append(f"{name}: {nights or 'n/a'}")
    return "; ".join(lines)


def bar(parts: Mapping[str, int]) -> Markup:
    """Draw one stacked bar. The names of the parts select CSS colors (`--c-<name>`)."""
    rows = [{"part": name, "n": n, "order": i} for i, (name, n) in enumerate(parts.items()) if n]
    colors = alt.Scale(domain=list(parts), range=[f"var(--c-{name})" for name in parts])
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_bar(stroke="var(--paper)", strokeWidth=1.5, height=14)
        .encode(
            x=alt.X("n:Q", stack="normalize", axis=None),
            color=alt.Color("part:N", legend=None, scale=colors),
            order=alt.Order("order:Q"),
        )
        .properties(width=300, height=14)
    )
    return _svg(chart, {"rows": rows}, padding=0, stretch=True)


def stacked(title: str, parts: Mapping[str, int], subject: str, nothing: str) -> Chart:
    """Make a chart of a stacked bar. The summary is the subject and the counts, or `nothing` if all counts are 0."""
    names = {name: "without a diagnosis" if name == "none" else words(name) for name in parts}
    counts = listed([f"{count(n)} {names[name]}" for name, n in parts.items() if n])
    return Chart(title, bar(parts), f"{subject}: {counts or nothing}.")


def coverage_risk(
    lines: Sequence[Sequence[tuple[float, float]]],
    band: Sequence[tuple[float, float, float]],
    target: float,
    chosen: float | None,
) -> Markup:
    """Draw the share of wrong answers over coverage, both from 0 to 1.

    Args:
        lines: Points (coverage, share wrong) of each line, in order.
        band: Interval (coverage, low, high) around the first line.
        target: Largest acceptable share of wrong answers, drawn as a dashed line.
        chosen: Coverage of the chosen thresholds, drawn as a vertical line; None for none.
    """
    rows = [{"s": s, "x": x, "y": y} for s, points in enumerate(lines) for x, y in points]
    top = min(1.0, math.ceil(10 * max([target, *(r["y"] for r in rows), *(high for _, _, high in band)])) / 10)
    percent = "datum.value * 100 + '%'"
    x = alt.X("x:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(values=[0, 0.5, 1], labelExpr=percent))
    scale = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(values=[0, top / 2, top], labelExpr=percent, domain=False, ticks=False, minExtent=24)
    series = list(range(len(lines)))
    colors = alt.Color("s:N", legend=None, scale=alt.Scale(domain=series, range=[color(s) for s in series]))
    dashes = alt.StrokeDash("s:N", legend=None, scale=alt.Scale(domain=series, range=[DASHES[s] for s in series]))
    layers = [
        alt.Chart(alt.NamedData("band"))
        .mark_area(opacity=0.13, color=color(0), interpolate="step-after")
        .encode(x=x, y=alt.Y("low:Q", title=None, scale=scale, axis=axis), y2="high:Q"),
        alt.Chart(alt.NamedData("rows"))
        .mark_line(strokeWidth=1.8, interpolate="step-after")
        .encode(x=x, y=alt.Y("y:Q", title=None, scale=scale, axis=axis), color=colors, strokeDash=dashes),
        alt.Chart(alt.NamedData("target"))
        .mark_rule(strokeDash=[4, 4], color="var(--soft)")
        .encode(y=alt.Y("y:Q", title=None, scale=scale, axis=axis)),
    ]
    if chosen is not None:
        layers.append(alt.Chart(alt.NamedData("chosen")).mark_rule(color="var(--ink)").encode(x=x))
    datasets = {
        "rows": rows,
        "band": [{"x": c, "low": low, "high": high} for c, low, high in band],
        "target": [{"y": target}],
        "chosen": [{"x": chosen}],
    }
    return _svg(alt.layer(*layers).properties(width=2 * WIDTH, height=2 * HEIGHT), datasets)


def swatch(series: int) -> Markup:
    """A legend symbol: a line and a point as drawn by `trend`."""
    dash = " ".join(map(str, DASHES[series % len(DASHES)]))
    stroke = "" if dash == "1 0" else f' stroke-dasharray="{dash}"'
    shape = OUTLINES[SHAPES[series % len(SHAPES)]]
    line = f'<path d="M0 6h26" stroke="currentColor" stroke-width="1.8"{stroke}/>'
    return Markup(  # noqa: S704 (numbers only)
        f'<svg class="swatch" viewBox="0 0 26 12" aria-hidden="true" style="color:{color(series)}">{line}'
        f'<g fill="currentColor">{shape}</g></svg>'
    )


def color(series: int) -> str:
    """CSS color of a series."""
    return f"var(--s{series % COLORS + 1})"


def _line(points: Sequence[Point], first: date, last: date) -> list[dict[str, Any]]:
    """Rows of one series for every day. A day without a point is a gap in the line."""
    by = {p.night: p for p in points}
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    banded = {day for day in days if day in by and by[day].low is not None}
    rows = []
    for day in days:
        p = by.get(day)
        mean, low, high = (p.mean, p.low, p.high) if p else (None, None, None)
        # A band needs two adjacent nights; the interval of a single night is drawn as a line.
        alone = day in banded and not banded & {day - timedelta(1), day + timedelta(1)}
        rows.append({"x": _ms(day), "s": points[0].series, "mean": mean, "low": low, "high": high, "alone": alone})
    return rows


def _ms(night: date) -> int:
    return int(datetime(night.year, night.month, night.day, tzinfo=UTC).timestamp()) * 1000


def _svg(
    chart: "alt.Chart | alt.LayerChart | alt.FacetChart",
    datasets: Mapping[str, object],
    padding: int = 3,
    *,
    stretch: bool = False,
) -> Markup:
    """Render to SVG. Rows are added last because altair copies and validates its data repeatedly."""
    spec = {**chart.to_dict(validate=False), "datasets": datasets}
    svg = vlc.vegalite_to_svg(spec, config={**LOOK, "padding": padding}, allowed_base_urls=[])
    # The page sets the size and describes the chart. Without this, screen readers would also read Vega's labels.
    svg = re.sub(r' (?:width|height)="[\d.]+"(?=[^>]*viewBox)', "", svg, count=2)
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    svg = re.sub(r' (?:role|aria-\w+)="[^"]*"', "", svg).replace("<svg ", f'<svg aria-hidden="true"{ratio} ', 1)
    return Markup(svg)  # noqa: S704 (made of numbers, see above)
