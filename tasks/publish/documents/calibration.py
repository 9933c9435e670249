"""The document of `leadline calibrate`: thresholds to paste, and risk by coverage. Left out: finding thresholds."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import yaml
from markupsafe import Markup

from tasks.analysis.calibrate import COLUMNS, Calibrated, Claims, Target, Traces
from tasks.publish.documents import document as doc
from tasks.publish.report import charts
from tasks.publish.report.text import number, percent, plural
from tasks.stats.calibration import STAGES, Bands, Calibration
from tasks.stats.risk import Curve, Point

COVERAGES = tuple(n / 10 for n in range(1, 11))
THRESHOLDS = ("nli", "similarity")  # kinds of judges whose file has `thresholds` and `abstain`
FIGURE = Markup(
    '<ul class="legend">{}</ul><figure><figcaption>Share of wrong ones among those sent, over the share of {} that is '
    'sent. Dashed: the target. Upright: the chosen thresholds.</figcaption><div class="plot" role="img" '
    'aria-label="Coverage against share wrong; the table below holds the same">{}</div></figure>'
)
SWATCH = Markup(
    '<li><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true" style="color:{}"><path d="M0 6h26" '
    'stroke="currentColor" stroke-width="1.8" stroke-dasharray="{}"/></svg>{}</li>'
)


def document(found: Sequence[Calibrated], target: Target) -> doc.Document:
    """Build the document: thresholds of each recipe and its judges."""
    once = shared(found)
    sections = [doc.Section("left-out", "In all recipes and judges", tuple(map(doc.Note, once)))] if once else []
    for i, of in enumerate(found):
        waterfall = tuple(_waterfall(of, target, once))
        sections.append(doc.Section(f"recipe-{i}", f"Waterfall of recipe {of.recipe}", waterfall))
        for j, (claims, bands) in enumerate(of.judges):
            blocks = tuple(_judge(claims, bands, target, once))
            sections.append(doc.Section(f"judge-{i}-{j}", f"Judge {claims.judge}", blocks))
    return doc.Document(
        kind="calibration",
        title="Calibration",
        subjects=(),
        summary="How many answers may be sent, or claims believed, so that at most "
        f"{percent(target.error, digits=1)} of them are wrong (confidence {target.confidence:g}). Brackets are 95% "
        "intervals over questions.",
        details=(),
        sections=tuple(sections),
    )


def shared(found: Sequence[Calibrated]) -> list[str]:
    """Remarks on left-out labels that apply to all recipes or to all judges, and are shown only once."""
    answers = [list(_left_out(of.traces)) for of in found]
    claims = [list(_picked(c)) for of in found for c, _ in of.judges]
    return [
        line
        for remarks in (answers, claims)
        if len(remarks) > 1
        for line in remarks[0]
        if all(line in lines for lines in remarks)
    ]


def _left_out(traces: Traces) -> Iterator[str]:
    if traces.picked:
        yield f"Left out: {plural(traces.picked, 'answer')} picked for review because of labels."
    if traces.undecided:
        yield f"Left out: {plural(traces.undecided, 'answer')} on which reviewers disagree or could not tell."


def _picked(claims: Claims) -> Iterator[str]:
    if claims.picked:
        yield f"Left out: {plural(claims.picked, 'claim')} picked for review because of labels."


def _waterfall(of: Calibrated, target: Target, once: Collection[str]) -> Iterator[doc.Block]:
    yield from (doc.Note(line) for line in _left_out(of.traces) if line not in once)
    c, labeled = of.waterfall, plural(len(of.traces.ids), "labeled answer")
    if c is None:
        yield doc.Note(f"{labeled}: at least {target.least} are needed.")
    else:
        yield doc.Note(f"{labeled}, {c.n_wrong} of them wrong ({c.n_wrong / c.n:.1%}).")
        yield _signals(c, of.traces)
        if c.curve.points:
            yield doc.Figure(partial(_figure, c, labeled))
            yield _curves(c)
        else:
            yield doc.Note(f"Each of {labeled} lacks the signal of a stage, so no thresholds send it on.")
        yield doc.Note(_result(c, target))
    if text := _recipe_yaml(of):
        yield doc.Paste(text)


def _signals(c: Calibration, traces: Traces) -> doc.Table:
    rows = [
        (
            stage,
            column,
            number(c.signals[i]),
            int(sum(map(math.isnan, traces.signals[:, i]))),
            f"{c.rule.thresholds[i]:.4f}" if c.rule else "-",
        )
        for i, (stage, column) in enumerate(COLUMNS.items())
    ]
    return doc.table("Stages", ("stage", "column of trace_scores", "area under ROC", "missing", "threshold"), rows, 2)


def _figure(c: Calibration, labeled: str) -> Markup:
    ours, retrieval = ([(p.coverage, p.wrong) for p in curve.points] for curve in (c.curve, c.by_retrieval))
    chart = charts.coverage_risk(
        [ours, retrieval, [(0.0, c.random), (1.0, c.random)]],
        [(p.coverage, p.low, p.high) for p in c.curve.points],
        c.error,
        c.rule.expected.coverage if c.rule else None,
    )
    names = ("the waterfall", "by retrieval alone", "at random")
    dashes = (" ".join(map(str, dash)) for dash in charts.DASHES)
    legend = Markup().join(
        SWATCH.format(charts.color(i), d, n) for i, (n, d) in enumerate(zip(names, dashes, strict=False))
    )
    return FIGURE.format(legend, labeled, chart)


def _curves(c: Calibration) -> doc.Table:
    """Table of the curves at fixed coverages. Each row shows the largest cut that sends at most this share."""
    rows: list[tuple[doc.Value, ...]] = []
    for coverage in COVERAGES:
        p, alone = _at(c.curve, coverage), _at(c.by_retrieval, coverage)
        own = (p.n, p.n_wrong, _share(p)) if p else ("-", "-", "-")
        rows.append((f"≤ {coverage:.0%}", *own, f"{alone.wrong:.1%}" if alone else "-", f"{c.random:.1%}"))
    rows.append(("area", "", "", f"{c.curve.area:.3f}", f"{c.by_retrieval.area:.3f}", f"{c.random:.3f}"))
    columns = ("sent", "answers", "wrong", "share wrong", "by retrieval alone", "at random")
    return doc.table("Coverage against risk", columns, rows)


def _at(curve: Curve, coverage: float) -> Point | None:
    return max((p for p in curve.points if p.coverage <= coverage + 1e-9), key=lambda p: p.n, default=None)


def _share(point: Point) -> doc.Cell:
    return doc.Cell(f"{point.wrong:.1%}", f"[{point.low:.1%}, {point.high:.1%}]")


def _result(c: Calibration, target: Target) -> str:
    if c.rule is None:
        missing = f" {c.n_missing} of {c.n} lack a signal, and can't be sent at all." if c.n_missing else ""
        return (
            f"No thresholds can be shown to send at most {target.error:.1%} wrong answers (confidence "
            f"{target.confidence:g}): nothing may be sent.{missing} Thresholds of 1 send nothing."
        )
    return (
        f"Of new traces {c.rule.expected.coverage:.1%} are sent, and {_share(c.rule.expected)} of these are wrong "
        f"(each labeled trace placed without its own label). Of the labeled traces these thresholds send "
        f"{c.rule.fitted.n}, {c.rule.fitted.n_wrong} of them wrong."
    )


def _judge(claims: Claims, b: Bands | None, target: Target, once: Collection[str]) -> Iterator[doc.Block]:
    yield from (doc.Note(line) for line in _picked(claims) if line not in once)
    if claims.without:
        yield doc.Note(f"Left out: {plural(claims.without, 'labeled claim')} without a probability by this judge.")
    if b is None:
        labeled = plural(len(claims.supported), "labeled claim")
        yield doc.Note(f"{labeled} with a probability: at least {target.least} are needed.")
        return
    yield doc.Note(f"{plural(b.n, 'labeled claim')}, {b.n_supported} of them supported ({b.n_supported / b.n:.1%}).")
    limit = f"at most {target.error:.1%}"
    if b.above is None:
        yield doc.Note(f"Of no claims can it be shown that {limit} are not supported: nothing may be called supported.")
    else:
        yield doc.Note(f"p_supported ≥ {b.high:.4f}: {plural(b.above.n, 'claim')}, {_share(b.above)} not supported.")
    if b.below is None:
        yield doc.Note(f"Of no claims can it be shown that {limit} are supported: nothing may be called unsupported.")
    else:
        yield doc.Note(f"p_supported < {b.low:.4f}: {plural(b.below.n, 'claim')}, {_share(b.below)} supported.")
    between = b.n - sum(p.n for p in (b.above, b.below) if p)
    yield doc.Note(f"In between: {plural(between, 'claim')}.")
    if claims.kind in THRESHOLDS and (b.above or b.below):
        paste = {
            "thresholds": {"supported": 1.0 if b.high is None else b.high},
            "abstain": None if b.abstain is None else list(b.abstain),
        }
        yield doc.Paste(f"# judge {claims.judge}\n{_yaml(paste)}")


def _recipe_yaml(of: Calibrated) -> str:
    """YAML to paste into the recipe; empty without thresholds."""
    lines = []
    if of.waterfall is not None:
        thresholds = of.waterfall.rule.thresholds if of.waterfall.rule else (1.0,) * len(STAGES)
        waterfall = {"waterfall": dict(zip(STAGES, thresholds, strict=True))}
        lines += [f"# recipe {of.name}", _yaml(waterfall)]
    for claims, b in of.judges if of.cascade else ():
        if b is not None and not claims.last and (b.above or b.below):
            end = 1.0 if b.high is None else b.high
            lines.append(f"# recipe {of.name}: cascade, entry {claims.stage}, after judge {claims.judge}")
            lines.append(_yaml({"band": list(b.abstain or (end, end))}))
    return "\n".join(lines)


def _yaml(value: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, default_flow_style=None)
