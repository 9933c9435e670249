"""The document of `leadline metaeval`: pass rates, failures, and for each grade a matrix of test types by cases.

Matrices are drawn with a shape and a color per outcome and with numbered rows and columns. Tables repeat them in words.
Pages show the suite's texts. Left out: how the rates are computed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from tasks.analysis.metaeval.diagnostics import JudgeReport
from tasks.analysis.metaeval.pass_rates import OUTCOMES, OVERALL, Rate, Result
from tasks.analysis.metaeval.suite import Case, Suite
from tasks.core.grades import GRADES
from tasks.publish.documents import document as doc
from tasks.publish.report.pages import render, words
from tasks.publish.report.text import number, percent, plural
from tasks.stats.agreement import Interval

LEGEND = (
    "Unparsable replies count as not passed, unjudged conditions are left out. Intervals are 95%, over cases. At"
    " random: the expected share of a judge that draws each grade evenly among its possible values, N/A among them."
)
FAILURES = 10  # shown in the terminal
STEP, SIZE, HEAD = 16, 12, 20  # of a matrix: distance and size of cells, and space for numbers, in SVG units
# One shape per outcome, as an SVG path from the upper left corner of a cell.
SHAPES = {
    "passed": "h12v12h-12z",
    "failed": "m1 1l10 10m0 -10l-10 10",
    "unparsable": "m0 2h12m-12 4h12m-12 4h12",
    "unjudged": "m5 5h2v2h-2z",
}
COLORS = {
    "passed": "var(--c-supported)",
    "failed": "var(--c-contradicted)",
    "unparsable": "var(--c-misused)",
    "unjudged": "var(--c-abstained)",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """Layout of a suite's cases in a matrix, one case per cell.

    Attributes:
        rows: Test types.
        columns: Topics. A topic with several cases of one type has several columns.
        cells: Case ids by row and column, from 0.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], str]


def grid(suite: Suite) -> Grid:
    """Lay out a suite, with types and topics in the suite's order."""
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


def document(suite: Suite, reports: Sequence[JudgeReport]) -> doc.Document:
    """Build the document of several judges on one suite: side by side, then judge by judge."""
    met = [f"{r.judge} meets {percent(r.rates.grades[OVERALL].value, digits=1)}" for r in reports]
    of = grid(suite)
    sections = [doc.Section("rates", "Pass rates", (doc.Note(LEGEND), _rates(reports)))]
    sections += [
        doc.Section(f"judge-{i}", f"{r.judge} ({r.judge_version})", tuple(_judge(of, r)))
        for i, r in enumerate(reports, 1)
    ]
    if failures := list(_failures(suite, reports)):
        note = doc.Note(f"{plural(len(failures), 'case')} of {len(suite.cases)}, in the order of the suite.", "page")
        sections.append(doc.Section("failures", "Conditions that are not met", (note, *failures)))
    return doc.Document(
        kind="metaeval",
        title=f"Unit tests of judges, suite {suite.name}",
        subjects=(),
        summary=f"{plural(len(suite.cases), 'case')}, version {suite.version}, each with a condition on every grade. "
        f"{'; '.join(met)} of the conditions.",
        details=(
            *(("judge", r.judge, r.judge_version) for r in reports),
            *(("with judge", r.judge, r.claims_judge_version) for r in reports if r.claims_judge_version),
        ),
        sections=tuple(sections),
    )


def _rates(reports: Sequence[JudgeReport]) -> doc.Table:
    rows = [(words(grade), [r.rates.grades[grade] for r in reports]) for grade in (*GRADES, OVERALL)]
    rows.append(("cases, every condition met", [r.rates.cases for r in reports]))
    return doc.table(
        "Share of conditions met, 95% interval",
        ("grade", *(r.judge for r in reports), "at random"),
        [(name, *map(_rate, rates), _random(rates)) for name, rates in rows],
    )


def _rate(rate: Rate) -> doc.Cell:
    cell = doc.interval(Interval(rate.value, rate.low, rate.high))
    lost = ", ".join(f"{n:,} {what}" for what, n in (("unparsable", rate.unparsable), ("unjudged", rate.unjudged)) if n)
    return replace(cell, detail=f"{cell.detail} ({lost})".strip()) if lost and rate.value is not None else cell


def _random(rates: Sequence[Rate]) -> str:
    return number(next((r.random for r in rates if r.random is not None), None), 3)


def _judge(of: Grid, report: JudgeReport) -> Iterator[doc.Block]:
    if report.diagnostics:
        yield doc.Reasons(report.diagnostics)
    yield from map(doc.Note, report.notes)
    yield doc.Figure(partial(_matrices, of, report))
    yield from (_table(of, grade, _by_case(report, grade)) for grade in GRADES)
    for by, groups in (("type", report.rates.types), ("topic", report.rates.topics)):
        columns = (by, *map(words, (*GRADES, OVERALL)))
        rows = [(name, *(_share(rates[grade]) for grade in (*GRADES, OVERALL))) for name, rates in groups.items()]
        yield doc.table(f"Conditions met by {by}", columns, rows)
    missed = [r for r in report.results if r.outcome in ("failed", "unparsable")]
    if missed:
        title = (
            f"{min(FAILURES, len(missed))} of {len(missed):,} conditions that are not met; --format html shows them all"
        )
        cells = [(r.case_id, r.test_type, words(r.grade), r.condition, _grade(r)) for r in missed[:FAILURES]]
        yield replace(doc.table(title, ("case", "type", "grade", "wanted", "got"), cells, 4), only="terminal")


def _by_case(report: JudgeReport, grade: str) -> dict[str, Result]:
    return {r.case_id: r for r in report.results if r.grade == grade}


def _matrices(of: Grid, report: JudgeReport) -> Markup:
    """Draw the matrix of each grade."""
    figures = []
    for grade in GRADES:
        outcomes = {case_id: r.outcome for case_id, r in _by_case(report, grade).items()}
        counts = Counter(outcomes.values())
        shown = ", ".join(f"{counts[o]} {o}" for o in OUTCOMES if counts[o] or o in ("passed", "failed"))
        figures.append((words(grade).capitalize(), shown, picture(of, outcomes)))
    swatches = [(outcome, _swatch(outcome)) for outcome in OUTCOMES]
    return Markup(render("metaeval_matrices", grid=of, figures=figures, swatches=swatches))  # noqa: S704 (escaped there)


def _table(of: Grid, grade: str, by_case: Mapping[str, Result]) -> doc.Table:
    """The same matrix as a table."""

    def cell(case_id: str | None) -> str:
        result = by_case.get(case_id or "")
        if result is None:
            return ""
        return f"{result.outcome} {_grade(result)}" if result.outcome in ("passed", "failed") else result.outcome

    columns = range(len(of.columns))
    rows = [(name, *(cell(of.cells.get((i, j))) for j in columns)) for i, name in enumerate(of.rows)]
    found = doc.table(f"{words(grade).capitalize()} as a table", ("type", *of.columns), rows, 1 + len(of.columns))
    return replace(found, folded=True, only="page")


def _share(rate: Rate) -> str | None:
    return None if rate.value is None else f"{rate.passed}/{rate.n}"


def _grade(result: Result) -> str:
    """A judge's grade, or why there is none, as text."""
    if result.outcome in ("unparsable", "unjudged"):
        return result.outcome + ("" if result.failure in (None, result.outcome) else f" ({result.failure})")
    return "N/A" if result.value is None else f"{result.value:g}"


def _failures(suite: Suite, reports: Sequence[JudgeReport]) -> Iterator[doc.Figure]:
    """Cases in which some judge fails a condition, with expected and actual grades."""
    by = [{(r.case_id, r.grade): r for r in report.results} for report in reports]
    for case in suite.cases:
        answers = {grade: [results.get((case.case_id, grade)) for results in by] for grade in GRADES}
        missed = [
            (words(grade), case.conditions[grade], [r and (r, _grade(r)) for r in given])
            for grade, given in answers.items()
            if any(r is not None and r.outcome in ("failed", "unparsable") for r in given)
        ]
        if missed:
            yield doc.Figure(partial(_failure, case, [report.judge for report in reports], missed))


def _failure(case: Case, judges: Sequence[str], missed: Sequence[tuple[object, ...]]) -> Markup:
    return Markup(render("metaeval_failure", case=case, judges=judges, missed=missed))  # noqa: S704 (as above)


def picture(of: Grid, outcomes: Mapping[str, str]) -> Markup:
    """Draw one grade's matrix as SVG, without text of the suite.

    Args:
        outcomes: Outcomes by case id.
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
    return Markup(  # noqa: S704 (numbers and our own words only)
        f'<svg aria-hidden="true" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-size="9" fill="var(--soft)">{numbers}{drawn}</svg>'
    )


def _swatch(outcome: str) -> Markup:
    """An outcome's shape, for the legend."""
    path = _path(outcome, f"M7 0{SHAPES[outcome]}")
    return Markup(f'<svg class="swatch" viewBox="0 0 26 12" aria-hidden="true">{path}</svg>')  # noqa: S704 (as above)


def _path(outcome: str, d: str) -> str:
    color = COLORS[outcome]
    if outcome in ("failed", "unparsable"):
        return f'<path d="{d}" fill="none" stroke="{color}" stroke-width="2"/>'
    return f'<path d="{d}" fill="{color}"/>'
