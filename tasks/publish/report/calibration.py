"""The page of `leadline calibrate`: coverage against risk, one file that needs no other.

Left out: how thresholds are found (`tasks/stats/calibration.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tasks.publish.report import charts, pages
from tasks.stats.calibration import STAGES, Bands, Calibration
from tasks.stats.risk import Curve, Point

COVERAGES = tuple(n / 10 for n in range(1, 11))


@dataclass(frozen=True, slots=True)
class Section:
    """What was found for one recipe; None where labels are too few."""

    recipe: str
    waterfall: Calibration | None
    judges: tuple[tuple[str, Bands | None], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """The curves at one coverage: the last cut that sends no more than that; None before the first."""

    coverage: float
    point: Point | None
    retrieval: Point | None


def rows(c: Calibration) -> list[Row]:
    """A table of the curves."""
    return [Row(at, _at(c.curve, at), _at(c.by_retrieval, at)) for at in COVERAGES]


def page(sections: Sequence[Section], target: Mapping[str, float]) -> str:
    """The HTML.

    Args:
        target: `error` and `confidence`.
    """
    shown = [{"name": s.recipe, "c": s.waterfall, "judges": s.judges, **_drawn(s.waterfall)} for s in sections]
    style = Markup(pages.style())  # noqa: S704 (our own file)
    return pages.render("calibration", sections=shown, stages=STAGES, target=target, style=style)


def _drawn(c: Calibration | None) -> dict[str, object]:
    if c is None or not c.curve.points:
        return {"chart": None, "rows": [], "legend": []}
    ours, retrieval = ([(p.coverage, p.wrong) for p in curve.points] for curve in (c.curve, c.by_retrieval))
    chart = charts.coverage_risk(
        [ours, retrieval, [(0.0, c.random), (1.0, c.random)]],
        [(p.coverage, p.low, p.high) for p in c.curve.points],
        c.error,
        c.rule.expected.coverage if c.rule else None,
    )
    names = ("the waterfall", "by retrieval alone", "at random")
    legend = [{"swatch": _line(s), "name": name} for s, name in enumerate(names)]
    return {"chart": chart, "rows": rows(c), "legend": legend}


def _line(series: int) -> Markup:
    dash = " ".join(map(str, charts.DASHES[series]))
    return Markup(  # noqa: S704 (numbers only)
        f'<svg class="swatch" viewBox="0 0 26 12" aria-hidden="true" style="color:{charts.colour(series)}">'
        f'<path d="M0 6h26" stroke="currentColor" stroke-width="1.8" stroke-dasharray="{dash}"/></svg>'
    )


def _at(curve: Curve, coverage: float) -> Point | None:
    return max((p for p in curve.points if p.coverage <= coverage + 1e-9), key=lambda p: p.n, default=None)
