"""The document of `leadline compare`, with texts of flipped claims. Left out: how the numbers are computed."""

from collections.abc import Iterable, Iterator, Sequence

from tasks.analysis.compare.results import OUTCOMES, AgainstPeople, Comparison, Drift, Group, Labels, Noise
from tasks.publish.documents import document as doc
from tasks.publish.report.pages import words
from tasks.publish.report.text import count, number, percent, plural
from tasks.run.selectors import Row
from tasks.stats.agreement import Interval
from tasks.stats.comparison import Estimate
from tasks.text.nearest import nearest

DIGITS = {"groundedness": 1}  # a score from 0 to 100; other numbers are from 0 to 1 and get 3 digits
TITLES = {
    "judge": "Judges",
    "recipe": "Recipes",
    "generator": "Generators",
    "prompt": "Prompt versions",
    "dates": "Days",
}
PLACES = {
    "before": "measured on traces of the first range that both have judged",
    "after": "measured on traces of the second range that both have judged",
    "elsewhere": "measured on traces of other days that both have judged",
}
SOURCES = {"judge": "the same requests judged again", "repeats": "the same questions answered again"}
CHANGE = "B − A, 95% interval"


def document(found: Comparison, link: doc.Links = doc.no_links) -> doc.Document:
    """Build the document of a comparison; A is the baseline, B the candidate."""
    sections = {
        ("signal", "Signal to noise"): _signal(found),
        ("numbers", "Numbers"): _numbers(found),
        ("drift", "Drift attribution"): _drift(found.drift, found.number),
        ("labels", "Labels of the same claims" if found.labels else "Claims"): _labels(found),
        ("people", "Compared with people"): _people(found.people),
        ("patterns", "Failure patterns"): _patterns(found),
        ("cost", "Cost"): _cost(found.cost),
        ("flips", "Claims that flipped"): _flips(found.flips, found.labels, link),
    }
    behind = [
        (f"{key}: {what}", getattr(arm, f"{what}_name"), getattr(arm, version))
        for key, arm in (("A", found.baseline), ("B", found.candidate))
        for what, version in (("recipe", "recipe"), ("judge", "judge_version"))
    ]
    return doc.Document(
        kind="compare",
        title=f"{TITLES[found.kind]} compared",
        subjects=(("A", found.baseline.name), ("B", found.candidate.name)),
        summary=summary(found.number, found.main),
        details=(
            *behind,
            *([("app", found.filters.app, "")] if found.filters.app else []),
            *doc.days(found.filters.first, found.filters.last),
        ),
        sections=tuple(
            doc.Section(*named, blocks) for named, found_blocks in sections.items() if (blocks := tuple(found_blocks))
        ),
    )


def summary(number: str, main: Estimate) -> str:
    """Describe the difference in the main number in one sentence."""
    if main.difference is None:
        return f"No difference in {words(number)} is known: one arm has no score."
    change = f"{words(number).capitalize()}, B − A: {doc.difference(_interval(main), digits(number))}"
    if main.p is None:
        return f"{change}; too few questions for an interval."
    significance = "significant" if main.p < 0.05 else "not significant"
    return f"{change}, p {'' if main.p < 0.001 else '= '}{doc.probability(main.p)}: {significance}."


def signal_to_noise(of: Noise, number: str) -> str:
    """Describe in one sentence by how much identical runs differ."""
    start = f"Signal to noise, {SOURCES[of.source]}"
    if of.spread is None:
        return f"{start}: n/a. {of.note}."
    if not of.spread:
        return f"{start}: identical runs do not differ. {of.note}."
    ratio = "n/a" if of.ratio is None else f"{of.ratio:.1f}"
    return f"{start}: {ratio} (identical runs differ by ± {of.spread:.{digits(number) + 1}f}). {of.note}."


def digits(number: str) -> int:
    """Number of decimals to show."""
    return DIGITS.get(number, 3)


def _interval(of: Estimate) -> Interval:
    return Interval(of.difference, of.low, of.high)


def _reach(estimates: Iterable[Estimate]) -> float:
    """The largest absolute value of all intervals, which scales the bars."""
    return max((abs(x) for e in estimates for x in (e.low, e.high, e.difference) if x is not None), default=0.0) or 1.0


def _signal(found: Comparison) -> Iterator[doc.Block]:
    yield doc.Note(
        f"The difference in {words(found.number)}, in units of what identical runs differ by; near 1 it is noise."
    )
    yield from (doc.Note(signal_to_noise(s, found.number)) for s in found.signal)
    yield from map(doc.Note, found.notes)
    if any(found.left_out):
        a, b = map(count, found.left_out)
        yield doc.Note(f"Without a partner, and left out: {a} of A, {b} of B.")


def _numbers(found: Comparison) -> Iterator[doc.Table]:
    yield _estimates("All, each on its own scale", "number", found.estimates, shared_scale=False)
    for by, groups in (("app", found.by_app), ("generator", found.by_generator)):
        if groups:
            yield _estimates(f"{words(found.number).capitalize()} by {by}", by, groups, shared_scale=True)


def _estimates(title: str, column: str, groups: Sequence[Group], *, shared_scale: bool) -> doc.Table:
    rows = []
    for group in groups:
        e, places = group.estimate, digits(group.number)
        reach = _reach([g.estimate for g in groups] if shared_scale else [e])
        n = count(e.n_a) if e.n_a == e.n_b else f"{count(e.n_a)} and {count(e.n_b)}"
        means = number(e.a, places), number(e.b, places)
        change = doc.difference(_interval(e), places, reach)
        rows.append((group.name or words(group.number), *means, change, doc.probability(e.p), n))
    return doc.table(title, (column, "A", "B", CHANGE, "p", "n"), rows)


def _drift(found: Sequence[Drift], name: str) -> Iterator[doc.Block]:
    if not found:
        return
    share = "" if found[0].share is None else f", {percent(found[0].share)} of them"
    yield doc.Note(
        f"The change in {words(name)} is the sum of two: the product's, and the judge's on the same answers "
        f"({PLACES[found[0].place]}{share})."
    )
    reach = _reach(e for d in found for e in (d.total, d.product, d.judge))
    rows: list[tuple[doc.Value, ...]] = [
        (d.name or "all", *(doc.difference(_interval(e), digits(name), reach) for e in (d.total, d.product, d.judge)))
        for d in found
    ]
    yield doc.table("The product's change and the judge's", ("", "change", "product's", "judge's"), rows)


def _labels(found: Comparison) -> Iterator[doc.Block]:
    if found.labels is not None:
        of = found.labels
        yield doc.Note(f"{plural(of.flipped, 'claim')} flipped from one label to another.")
        yield doc.matrix("Claims: label by A (rows) and by B (columns)", of.outcomes, of.matrix)
        agreements = [("all", of.agreement), *((name, a) for _, name, a in of.groups)]
        yield doc.table(
            "Agreement on claims that both labeled",
            ("", "claims", "equal", "Cohen's kappa", "balanced"),
            [(name, a.n, *map(doc.interval, (a.share, a.kappa, a.balanced))) for name, a in agreements],
        )
    if found.outcomes is not None:
        a, b = found.outcomes
        yield doc.Note("A and B have different claims.")
        yield doc.table(
            "Claims by outcome",
            ("outcome", "A", "B"),
            [(doc.label(o), a.get(o, 0), b.get(o, 0)) for o in OUTCOMES if o in a or o in b],
        )


def _people(of: AgainstPeople | None) -> Iterator[doc.Block]:
    if of is None:
        return
    left_out = f"; left out, since picked for their labels: {count(of.picked)}" if of.picked else ""
    yield doc.Note(
        f"On {plural(of.n, 'claim')} of {plural(of.questions, 'question')}{left_out}. The same claims for A and B."
    )
    rows = [
        (name, doc.interval(gain.a), doc.interval(gain.b), doc.difference(gain.difference), doc.probability(gain.p))
        for name, gain in (
            ("balanced accuracy, supported or not", of.accuracy),
            ("Cohen's kappa of the labels", of.kappa),
        )
    ]
    yield doc.table("Agreement with people's labels", ("", "A", "B", CHANGE, "p"), rows)


def _patterns(found: Comparison) -> Iterator[doc.Table]:
    if found.patterns:
        columns = ("A", "B", "both") if found.labels else ("A", "B")
        rows = [(words(p["pattern"]), *(p[f"n_{c.lower()}"] for c in columns)) for p in found.patterns]
        yield doc.table("Claims that show each failure pattern", ("pattern", *columns), rows)


def _cost(rows: Sequence[Row]) -> Iterator[doc.Table]:
    if "verdicts" in rows[0]:
        yield doc.table(
            "Cost of judging these traces; time at the speed of all recorded runs",
            ("", "verdicts", "tokens read", "cached", "written", "time", "GPU time"),
            [
                (
                    r["arm"],
                    *(r[c] for c in ("verdicts", "tokens_in", "tokens_cached", "tokens_out")),
                    doc.seconds(r["seconds"]),
                    doc.seconds(r["gpu_seconds"]),
                )
                for r in rows
            ],
        )
    else:
        yield doc.table(
            "Cost of an answer, as logged",
            ("", "traces", "mean tokens read", "mean tokens written", "median time", "mean cost, US$"),
            [
                (
                    r["arm"],
                    r["n"],
                    number(r["tokens_in"], 0),
                    number(r["tokens_out"], 0),
                    doc.seconds(r["latency_s"]),
                    number(r["cost"], 5),
                )
                for r in rows
            ],
        )


def _flips(flips: Sequence[Row], labels: Labels | None, link: doc.Links) -> Iterator[doc.Block]:
    if not flips or labels is None:
        return
    yield doc.Note(f"{len(flips)} of {count(labels.flipped)}, the ones that both are most confident of first.")
    for flip in flips:
        opinions = tuple(
            doc.Opinion(
                arm.upper(),
                doc.label(flip[f"label_{arm}"], flip[f"confidence_{arm}"]),
                flip[f"explanation_{arm}"],
                flip[f"deciding_chunk_id_{arm}"],
                deciding_sentence(flip[f"deciding_chunk_text_{arm}"], flip["text"]),
            )
            for arm in "ab"
        )
        place = f"{flip['date']} · {flip['app']} · {flip['generator']} · trace"
        trace = doc.identifier(flip["trace_id"], link(flip["date"], flip["trace_id"]))
        yield doc.Example(flip["text"] or flip["claim_id"], place, trace, opinions)


def deciding_sentence(chunk: str | None, claim: str | None) -> str | None:
    """The sentence of the deciding chunk that shares most with the claim; the whole chunk if the claim has no text."""
    return nearest(chunk, claim, 1) if chunk and claim else chunk
