"""The picture beside the tables of the embedded judge: reliability, and what abstaining buys, a panel for each set.

Left out: the numbers themselves (`report.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import vl_convert as vlc
from scipy import stats

from tasks.stats import risk
from training.report import BINS, Bin, Measured, ece, title

FILE = "judge.svg"
COLUMNS, SIZE = 5, 132
INK, SOFT, RULE, BLUE, LIGHT = "#1f2328", "#59636e", "#d8dee4", "#0550ae", "#b6d4f5"
STRIP = 0.34  # height of the strip of counts below a reliability diagram, in units of its axis
BAR = 0.2  # of it, the highest bar
BETWEEN = {"row": 62, "column": 40}  # pixels; the titles of the panels stand in them
HIGHEST = 0.75  # share of wrong labels
UNIT = alt.Scale(domain=[0, 1])
FEWEST = 10  # claims from which on a share is drawn as part of a line
LOOK: dict[str, Any] = {
    "font": "sans-serif",
    "background": "#ffffff",
    "padding": 14,
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT, "titleColor": SOFT, "gridColor": RULE, "domainColor": RULE, "tickColor": RULE,
        "labelFontSize": 9, "titleFontSize": 10, "titleFontWeight": "normal", "tickSize": 3,
    },
    "title": {
        "color": INK, "subtitleColor": SOFT, "fontSize": 11, "subtitleFontSize": 9, "anchor": "start", "offset": 6,
    },
}  # fmt: skip
RELIABILITY = (
    "Share of claims that people call supported, with its 95% interval, by the judge's p_supported in ten bins. "
    "Hollow: fewer than 10 claims. Bars: claims in each bin."
)
COVERAGE = (
    "Share of wrong labels if only the surest claims are answered. Dashed: if claims were left out at random. "
    "Dotted: in the best order."
)


def draw(measured: Mapping[str, Measured]) -> str:
    """The picture as SVG."""
    panels = [(title(name), m, _Place(i, len(measured))) for i, (name, m) in enumerate(measured.items())]
    blocks = [
        _block("Reliability", RELIABILITY, [_reliability(*panel) for panel in panels]),
        _block("Coverage and risk", COVERAGE, [_coverage(*panel) for panel in panels]),
    ]
    chart = alt.vconcat(*blocks, spacing=30).configure(**LOOK)
    svg = vlc.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
    # The page describes the whole picture: Vega's labels of its marks would be read out one by one.
    return re.sub(r' (?:role|aria-\w+)="[^"]*"', "", svg)


@dataclass(frozen=True)
class _Place:
    """Of a panel among `n`; the outer ones name their axes."""

    i: int
    n: int

    @property
    def left(self) -> bool:
        return self.i % COLUMNS == 0

    @property
    def bottom(self) -> bool:
        return self.i + COLUMNS >= self.n


def _block(heading: str, explanation: str, panels: list[Any]) -> alt.ConcatChart:
    words = alt.TitleParams(heading, subtitle=explanation, fontSize=15, subtitleFontSize=10.5, offset=14)
    return alt.concat(*panels, columns=COLUMNS, title=words, align="all", bounds="flush", spacing=BETWEEN)


def _reliability(name: str, m: Measured, place: _Place) -> Any:
    rows = [_point(b, max(x.n for x in m.bins)) for b in m.bins]
    x = alt.X("p:Q", title="p_supported" if place.bottom else None, scale=UNIT, axis=_x_axis(".1f"))
    middle = alt.X("middle:Q", scale=UNIT)

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=[-STRIP, 1], nice=False)
        return alt.Y(field, title="supported" if place.left else None, scale=scale, axis=_y_axis([0, 0.5, 1], ".1f"))

    base = alt.Chart(alt.InlineData(rows))
    diagonal = alt.Chart(alt.InlineData([{"p": 0, "share": 0}, {"p": 1, "share": 1}]))
    enough, few = f"datum.n >= {FEWEST}", f"datum.n < {FEWEST}"
    layers = alt.layer(
        base.mark_bar(color=LIGHT, width=SIZE / BINS - 2).encode(x=middle, y=y("floor:Q"), y2="top:Q"),
        base.mark_text(color=SOFT, fontSize=5.5, dy=-4).encode(
            x=middle, y=y("top:Q"), text=alt.Text("n:Q", format=",")
        ),
        diagonal.mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=y("share:Q")),
        base.mark_rule(color=BLUE, strokeWidth=1).encode(x=x, y=y("low:Q"), y2="high:Q"),
        base.mark_line(color=BLUE, strokeWidth=1.4).encode(x=x, y=y("share:Q")).transform_filter(enough),
        base.mark_point(color=BLUE, filled=True, opacity=1, size=22)
        .encode(x=x, y=y("share:Q"))
        .transform_filter(enough),
        base.mark_point(color=BLUE, fill="#ffffff", opacity=1, size=16, strokeWidth=1)
        .encode(x=x, y=y("share:Q"))
        .transform_filter(few),
    )
    words = alt.TitleParams(name, subtitle=f"{len(m.claims.labels):,} claims, ECE {ece(m.bins):.2f}")
    return layers.properties(width=SIZE, height=SIZE * (1 + STRIP), title=words)


def _point(b: Bin, most: int) -> dict[str, float]:
    """A bin, with Wilson's interval of its share, and its bar in the strip below."""
    ends = stats.binomtest(round(b.n * b.supported), b.n).proportion_ci(method="wilson")
    return {
        "p": b.p, "share": b.supported, "low": ends.low, "high": ends.high, "n": b.n,
        "middle": (min(int(b.p * BINS), BINS - 1) + 0.5) / BINS, "floor": -STRIP, "top": BAR * b.n / most - STRIP,
    }  # fmt: skip


def _coverage(name: str, m: Measured, place: _Place) -> Any:
    n, wrong = len(m.wrong), int(m.wrong.sum())
    positions = np.unique(np.linspace(min(FEWEST, n), n, 80).round().astype(np.int64))
    best = np.maximum(0, positions - (n - wrong)) / positions
    lines = {
        "judge": zip(positions, risk.shares(m.doubt, m.wrong)[positions - 1], strict=True),
        "random": [(positions[0], wrong / n), (n, wrong / n)],
        "best": zip(positions, best, strict=True),
    }
    rows = [{"line": line, "x": float(k / n), "y": float(y)} for line, points in lines.items() for k, y in points]

    def by(channel: Any, values: list[Any]) -> Any:
        return channel("line:N", legend=None, scale=alt.Scale(domain=list(lines), range=values))

    drawn = (
        alt.Chart(alt.InlineData(rows))
        .mark_line(strokeJoin="round")
        .encode(
            x=alt.X("x:Q", title="answered" if place.bottom else None, scale=UNIT, axis=_x_axis("%")),
            y=alt.Y(
                "y:Q",
                title="wrong" if place.left else None,
                scale=alt.Scale(domain=[0, HIGHEST], nice=False, clamp=True),
                axis=_y_axis([0, 0.2, 0.4, 0.6], "%"),
            ),
            color=by(alt.Color, [BLUE, SOFT, SOFT]),
            strokeDash=by(alt.StrokeDash, [[1, 0], [4, 3], [1, 2]]),
            strokeWidth=by(alt.StrokeWidth, [1.8, 1, 1]),
        )
    )
    words = alt.TitleParams(name, subtitle=f"{wrong / n:.0%} wrong, AURC {risk.area(m.doubt, m.wrong):.2f}")
    return alt.layer(drawn).properties(width=SIZE, height=SIZE * 0.8, title=words)


def _x_axis(form: str) -> alt.Axis:
    return alt.Axis(values=[0, 0.5, 1], format=form, grid=False, labelFlush=True)


def _y_axis(values: list[float], form: str) -> alt.Axis:
    return alt.Axis(values=values, format=form, domain=False, ticks=False, minExtent=30, maxExtent=30)
