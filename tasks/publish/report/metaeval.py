"""The page of `leadline metaeval`: matrices of test types by cases, and the failures side by side; one file.

It shows what `--json` prints, with the suite's texts beside it. In a picture, outcomes differ by shape as well as by
colour, rows and columns go by numbers, and tables hold the same in words. Left out: what is counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.analysis.metaeval.pass_rates import OUTCOMES, OVERALL
from tasks.analysis.metaeval.suite import Suite
from tasks.core.grades import GRADES
from tasks.publish.report.files import write
from tasks.publish.report.pages import render, style
from tasks.publish.report.text import number

Found = Mapping[str, Any]  # of one judge, as `--json` prints it

LEGEND = (
    "Unparsable replies count as not passed, unjudged conditions are left out. Intervals are 95%, over cases. At"
    " random: what a judge is\nexpected to pass that draws each grade evenly among its possible values, N/A among them."
)
STEP, SIZE, HEAD = 16, 12, 20  # of a matrix: from cell to cell, a cell's side, room for the numbers
# Each outcome has a shape of its own, drawn from a cell's upper left corner.
SHAPES = {
    "passed": "h12v12h-12z",
    "failed": "m1 1l10 10m0 -10l-10 10",
    "unparsable": "m0 2h12m-12 4h12m-12 4h12",
    "unjudged": "m5 5h2v2h-2z",
}
COLOURS = {
    "passed": "var(--c-supported)",
    "failed": "var(--c-contradicted)",
    "unparsable": "var(--c-misused)",
    "unjudged": "var(--c-abstained)",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """How a suite's cases lie in a matrix: each in a cell of its own.

    Attributes:
        rows: Test types.
        columns: Topics; one that has several cases of a type has several columns.
        cells: Case ids by row and column, from 0.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], str]


def grid(suite: Suite) -> Grid:
    """The matrix of a suite, types and topics in its order."""
    rows = list(dict.fromkeys(case.test_type for case in suite.cases))
    placed: dict[tuple[str, str], list[str]] = {}
    for case in suite.cases:
        placed.setdefault((case.topic, case.test_type), []).append(case.case_id)
    columns: list[str] = []
    cells: dict[tuple[int, int], str] = {}
    for topic in dict.fromkeys(case.topic for case in suite.cases):
        wide = max(len(ids) for (of, _), ids in placed.items() if of == topic)
        for row, test_type in enumerate(rows):
            for nth, case_id in enumerate(placed.get((topic, test_type), ())):
                cells[row, len(columns) + nth] = case_id
        columns += [topic] if wide == 1 else [f"{topic} {n}" for n in range(1, wide + 1)]
    return Grid(tuple(rows), tuple(columns), cells)


def got(result: Found) -> str:
    """What a judge said, in a word."""
    if result["outcome"] in ("unparsable", "unjudged"):
        why = "" if result["failure"] in (None, result["outcome"]) else f" ({result['failure']})"
        return f"{result['outcome']}{why}"
    return "N/A" if result["value"] is None else f"{result['value']:g}"


def picture(of: Grid, outcomes: Mapping[str, str]) -> Markup:
    """One grade's matrix as SVG, with nothing of the suite's texts in it.

    Args:
        outcomes: By case id.
    """
    paths: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for (row, column), case_id in of.cells.items():
        if (outcome := outcomes.get(case_id)) is not None:
            paths[outcome].append(f"M{HEAD + column * STEP} {HEAD + row * STEP}{SHAPES[outcome]}")
    drawn = "".join(_path(outcome, "".join(d)) for outcome, d in paths.items() if d)
    above = ((HEAD + c * STEP + SIZE // 2, HEAD - 6, "middle", c + 1) for c in range(len(of.columns)))
    beside = ((HEAD - 5, HEAD + r * STEP + SIZE - 2, "end", r + 1) for r in range(len(of.rows)))
    numbers = "".join(f'<text x="{x}" y="{y}" text-anchor="{at}">{n}</text>' for x, y, at, n in (*above, *beside))
    width, height = HEAD + len(of.columns) * STEP, HEAD + len(of.rows) * STEP
    return Markup(  # noqa: S704 (made of numbers and our own words)
        f'<svg aria-hidden="true" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-size="9" fill="var(--soft)">{numbers}{drawn}</svg>'
    )


def swatch(outcome: str) -> Markup:
    """An outcome's shape for the legend."""
    path = _path(outcome, f"M7 0{SHAPES[outcome]}")
    return Markup(f'<svg class="swatch" viewBox="0 0 26 12" aria-hidden="true">{path}</svg>')  # noqa: S704 (as above)


def write_page(path: Path, suite: Suite, told: Sequence[Found]) -> None:
    """Write the page.

    Args:
        told: What was found of each judge on this suite.

    Raises:
        LeadlineError: It can't be written.
    """
    of = grid(suite)
    write(
        path,
        render(
            "metaeval",
            suite=suite,
            told=told,
            grades=(*GRADES, OVERALL),
            legend=LEGEND,
            swatches=[(outcome, swatch(outcome)) for outcome in OUTCOMES],
            grid=of,
            judges=[{"found": one, "matrices": list(_matrices(of, one))} for one in told],
            failures=list(_failures(suite, told)),
            rate=_rate,
            random=lambda rates: number(next((r["random"] for r in rates if r["random"] is not None), None), 3),
            css=Markup(style()),  # noqa: S704 - our own file
        ),
    )


def _path(outcome: str, d: str) -> str:
    colour = COLOURS[outcome]
    if outcome in ("failed", "unparsable"):
        return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return f'<path d="{d}" fill="{colour}"/>'


def _matrices(of: Grid, one: Found) -> Iterator[dict[str, Any]]:
    """Each grade's picture, the same in words, and how often which outcome occurs."""
    for grade in GRADES:
        by_case = {r["case_id"]: r for r in one["results"] if r["grade"] == grade}
        outcomes = {case_id: r["outcome"] for case_id, r in by_case.items()}
        counts = {o: sum(found == o for found in outcomes.values()) for o in OUTCOMES}
        yield {
            "grade": grade,
            "picture": picture(of, outcomes),
            "counts": ", ".join(f"{n} {o}" for o, n in counts.items() if n or o in ("passed", "failed")),
            "rows": [
                (name, [by_case.get(of.cells.get((row, column), "")) for column in range(len(of.columns))])
                for row, name in enumerate(of.rows)
            ],
        }


def _failures(suite: Suite, told: Sequence[Found]) -> Iterator[dict[str, Any]]:
    """Cases in which some judge misses a condition: the grades that it misses, and what each judge said of them."""
    by = [{(r["case_id"], r["grade"]): r for r in one["results"]} for one in told]
    for case in suite.cases:
        said = {grade: [of.get((case.case_id, grade)) for of in by] for grade in GRADES}
        missed = [
            {"grade": grade, "wanted": str(case.conditions[grade]), "said": [r and {**r, "got": got(r)} for r in its]}
            for grade, its in said.items()
            if any(r is not None and r["outcome"] in ("failed", "unparsable") for r in its)
        ]
        if missed:
            yield {"case": case, "missed": missed}


def _rate(rate: Found) -> dict[str, str]:
    lost = [f"{rate[what]} {what}" for what in ("unparsable", "unjudged") if rate[what]]
    ends = "" if rate["low"] is None else f"[{rate['low']:.3f}, {rate['high']:.3f}]"
    return {"value": number(rate["value"], 3), "ends": ends, "lost": ", ".join(lost)}
