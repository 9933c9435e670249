"""`leadline compare`: two judges, recipes, generators, prompt versions or ranges of days, side by side.

As tables for a terminal, as JSON, or as a page. Texts of claims are shown, since that is what is asked for; they are
never read as markup.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.console import console, interval, print_json, table
from tasks.analysis.compare import compare
from tasks.analysis.compare.findings import OUTCOMES, Comparison, Labels
from tasks.analysis.compare.selectors import Filters, Row
from tasks.core.config import load_nightly
from tasks.publish.report import comparison as page
from tasks.publish.report.pages import words
from tasks.publish.report.text import excerpt, number
from tasks.store.warehouse import reading


def run(
    config: Path,
    sides: tuple[str, str],
    filters: Filters,
    chosen: str | None,
    flips: int,
    html: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Compare, and show or write what was found.

    Raises:
        UsageError: A side is unknown or not scored, or nothing can be compared.
        LeadlineError: The page can't be written.
    """
    with reading(load_nightly(config).warehouse) as reader:
        found = compare.compare(reader, sides, filters, chosen, flips)
    if html is not None:
        page.write_page(html, found.as_dict())
    if as_json:
        print_json(found.as_dict())
    else:
        show(found)
        if html is not None:
            Console(stderr=True).print(f"page  {html}", highlight=False, soft_wrap=True, markup=False)


def show(found: Comparison) -> None:
    """Print a comparison for people."""
    out = console()
    plain = found.as_dict()
    out.print(Text(f"{page.TITLES[found.kind]}: A = {found.a.name}, B = {found.b.name}", "bold"))
    out.print(Text(page.verdict(plain)))
    alone = "Without a partner, and left out: {:,} of A, {:,} of B."
    left_out = [alone.format(*found.left_out)] if any(found.left_out) else []
    for line in (*(page.signal(s, found.number) for s in plain["signal"]), *found.notes, *left_out):
        out.print(Text(line, "dim"))
    for shown in _tables(found, plain):
        out.print(shown)
    for i, flip in enumerate(found.flips):
        if i == 0:
            out.print(Text(f"Claims that flipped, {len(found.flips)} of {flips_of(found):,}", "bold"))
        _show_flip(out, flip)


def flips_of(found: Comparison) -> int:
    """Claims that both sides gave a label, another one each."""
    return found.labels.flipped if found.labels else 0


def _show_flip(console: Console, flip: Row) -> None:
    console.print(Text(f"\n{flip['text'] or flip['claim_id']}"))
    console.print(Text(f"{flip['date']} · {flip['app']} · {flip['generator']} · trace {flip['trace_id']}", "dim"))
    for side in "ab":
        confidence = flip[f"confidence_{side}"]
        sure = "" if confidence is None else f" ({confidence:.2f})"
        said = flip[f"explanation_{side}"] or _evidence(flip, side)
        console.print(Text(f"  {side.upper()}  {words(flip[f'label_{side}'])}{sure}: {said}"))


def _evidence(flip: Row, side: str) -> str:
    """What stands in for an explanation that the judge gave none of: the chunk that decided."""
    chunk, text = flip[f"deciding_chunk_id_{side}"], flip[f"deciding_chunk_text_{side}"]
    return "no explanation" if chunk is None else f"chunk {chunk}: {excerpt(str(text or ''), limit=160)}"


def _tables(found: Comparison, plain: dict[str, Any]) -> Iterator[Table]:
    yield _estimates("Numbers", "number", [(_name(g["number"]), g) for g in plain["estimates"]])
    for title, rows in (("By app", plain["by_app"]), ("By generator", plain["by_generator"])):
        if rows:
            yield _estimates(f"{title}: {_name(found.number)}", title[3:], [(g["name"], g) for g in rows])
    if plain["shifts"]:
        yield _shifts(plain["shifts"], found.number)
    if found.labels is not None:
        yield from _labels(found.labels)
    if plain["people"] is not None:
        yield _people(plain["people"])
    if found.outcomes is not None:
        outcomes = [o for o in OUTCOMES if any(o in side for side in found.outcomes)]
        rows = [(words(o), *(f"{side.get(o, 0):,}" for side in found.outcomes)) for o in outcomes]
        yield table("Claims", ("outcome", "A", "B"), rows)
    if found.patterns:
        columns = ("n_a", "n_b", "n_both") if found.labels is not None else ("n_a", "n_b")
        rows = [(words(p["pattern"]), *(_count(p[c]) for c in columns)) for p in found.patterns]
        yield table("Failure patterns: claims that show them", ("pattern", "A", "B", "both")[: len(columns) + 1], rows)
    yield _cost(found.cost)


def _estimates(title: str, column: str, rows: Sequence[tuple[str, Row]]) -> Table:
    names = (column, "A", "B", "B − A, 95% interval", "p", "n")
    cells = []
    for name, group in rows:
        e, places = group["estimate"], page.digits(group["number"])
        n = _count(e["n_a"]) if e["n_a"] == e["n_b"] else f"{e['n_a']:,} and {e['n_b']:,}"
        means = (number(e["a"], places), number(e["b"], places))
        cells.append((name, *means, page.difference(e, places), page.probability(e["p"]), n))
    return table(title, names, cells)


def _shifts(rows: Sequence[Row], name: str) -> Table:
    """A change in two; each with its interval."""
    places = page.digits(name)
    cells = [
        (r["name"] or "all", *(page.difference(r[part], places) for part in ("total", "product", "judge")))
        for r in rows
    ]
    title = f"{_name(name).capitalize()}: the change is the product's and the judge's ({page.PLACES[rows[0]['place']]})"
    return table(title, ("", "change", "product's", "judge's shift"), cells)


def _labels(labels: Labels) -> Iterator[Table]:
    used = page.used(labels.matrix)
    rows = [(words(labels.outcomes[i]), *(f"{labels.matrix[i][j]:,}" for j in used)) for i in used]
    yield table(
        "Claims: what A says (rows), what B says of them (columns)",
        ("", *(words(labels.outcomes[j]) for j in used)),
        rows,
    )
    named = [("all", labels.agreement), *((name, a) for _, name, a in labels.groups)]
    cells = [(name, f"{a.n:,}", *(interval(i) for i in (a.share, a.kappa, a.balanced))) for name, a in named]
    yield table(
        "Agreement on claims that both gave a label", ("", "claims", "equal", "Cohen's kappa", "balanced"), cells
    )


def _people(of: Mapping[str, Any]) -> Table:
    """Both sides against people's labels."""
    cells = [
        (name, page.within(g["a"]), page.within(g["b"]), page.gained(g["difference"]), page.probability(g["p"]))
        for name, g in page.against_people(of)
    ]
    return table(page.reviewed(of), ("", "A", "B", "B − A, 95% interval", "p"), cells)


def _cost(rows: Sequence[Row]) -> Table:
    if "verdicts" in rows[0]:
        title = "Cost of judging these traces; seconds at the rate of all runs"
        names = ["side", "verdicts", "tokens read", "cached", "written", "seconds", "GPU seconds"]
        counts: tuple[str, ...] = ("verdicts", "tokens_in", "tokens_cached", "tokens_out")
        means: tuple[tuple[str, int], ...] = (("seconds", 1), ("gpu_seconds", 1))
    else:
        title = "What an answer takes, as logged"
        names = ["side", "traces", "tokens read", "tokens written", "median seconds"]
        counts, means = ("n",), (("tokens_in", 0), ("tokens_out", 0), ("latency_s", 2))
    cells = [(r["side"], *(_count(r[c]) for c in counts), *(number(r[c], places) for c, places in means)) for r in rows]
    return table(title, names, cells)


def _count(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"


def _name(number: str) -> str:
    return number.replace("_", " ")
