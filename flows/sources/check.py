"""`leadline sources`: inspect a source before using it in a night. Nothing is stored."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from flows.console import console, counted, emit, print_lines, table
from flows.options import Form, Night, Output, days_or_yesterday, optional
from tasks import sources
from tasks.core.config import did_you_mean, given_file, load_nightly, load_yaml, recipes_of
from tasks.core.errors import DataError, UsageError
from tasks.core.paths import CONFIG
from tasks.core.types import Trace
from tasks.ingest.check import FIELDS, Check, find
from tasks.ingest.check import check as checked
from tasks.publish.report.text import excerpt, percent
from tasks.sources import Source
from tasks.sources.spans import Assembled, Span
from tasks.sources.spans.texts import Document, documents_of

WHERE = 3  # locations to show per field
FILES = 3  # files to show

Settings = Annotated[
    Path, typer.Argument(help="The source's file, such as configs/sources/phoenix.yaml.", metavar="SOURCE")
]


def check(
    source: Settings,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of traces to read.", min=1)] = 500,
    least: Annotated[
        list[str] | None,
        optional("A required share, such as session=0.9; repeat for more.", "--least", metavar="FIELD=SHARE"),
    ] = None,
    night: Night = None,
    form: Form = "table",
    output: Output = None,
    config: Annotated[
        Path | None, optional("A nightly config, for its gates and its first recipe's citations.", "--config", "-c")
    ] = None,
) -> None:
    """Show what a source provides: which fields are found, where, and why others are not. Stores nothing.

    Example: leadline sources check configs/sources/phoenix.yaml --date 2026-11-01
    """
    wanted = dict(map(_share, least or ()))
    day, _ = days_or_yesterday(night, None, None)
    gates = extractor = None
    if config:
        nightly = load_nightly(config)
        gates, extractor = nightly.gates, recipes_of(nightly, config)[0].recipe.extractor
    found = checked(_load(source, config or CONFIG), day, datetime.now(UTC).date(), limit, wanted, gates, extractor)
    result = {"source": str(source), "date": day, "fit": not found.below, **_fields_of(found)}
    emit(form, output, partial(_draw, source, day, found), [result])
    if found.below:
        shares = {f.field: f.share for f in found.fields}
        low = ", ".join(f"{name} {percent(shares[name])} (at least {percent(n)})" for name, n in found.below.items())
        raise DataError(
            f"{source} is not fit for {day}: {low}, of {counted(found.seen, 'trace')} seen. "
            "Correct the keys that the causes name, and look again; `leadline sources show` shows one trace."
        )


def show(
    source: Settings,
    trace_id: Annotated[str, typer.Argument(help="Its id in the store.", metavar="TRACE_ID")],
    night: Night = None,
) -> None:
    """Draw the spans of one trace, and mark what Leadline uses. Prints texts of the trace; stores nothing.

    Example: leadline sources show configs/sources/phoenix.yaml 7f0c2a --date 2026-11-01
    """
    day, _ = days_or_yesterday(night, None, None)
    found, spans = find(_load(source), day, trace_id)
    out = console()
    if found.reject:
        print_lines(f"{trace_id} is refused: {found.reject.reason} ({found.reject.detail})", out=out)
    else:
        print_lines(f"{trace_id} is imported.", out=out)
    for root in _drawn(found, spans):
        out.print(root)
    if found.trace:
        out.print(_trace(found.trace), soft_wrap=True)


def _load(path: Path, config: Path = CONFIG) -> Source:
    path = given_file(path, "sources", config)
    return sources.load(load_yaml(path, "kind"), str(path), path.resolve().parent)


def _share(given: str) -> tuple[str, float]:
    name, _, value = given.partition("=")
    if name not in FIELDS:
        raise UsageError(f"--least {given}: {name!r} is not a field. {did_you_mean(name, list(FIELDS), 'fields')}")
    try:
        share = float(value)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise UsageError(f"--least {given}: {value!r} is not a valid share. Write a number from 0 to 1: {name}=0.9.")
    return name, share


def _fields_of(found: Check) -> dict[str, object]:
    return {name: getattr(found, name) for name in Check.__slots__}


def _draw(source: Path, day: date, found: Check, out: Console) -> None:
    print_lines(
        f"{source}, {day}: {counted(found.seen, 'trace')} seen, {found.imported:,} imported, {found.skipped:,} skipped",
        *(f"  from {name}" for name in found.files[:FILES]),
        *([f"  and {len(found.files) - FILES:,} more"] if len(found.files) > FILES else []),
        out=out,
    )
    rows = [(f.field, f"{f.found:,}", f"{f.of:,}", percent(f.share), _places(f.where)) for f in found.fields]
    out.print(table("", ("field", "found", "of", "share", "where"), rows, ("found", "of", "share")))
    for cause in found.causes:
        normal = ", which is normal" if cause.normal else ""
        lines = [f"{cause.field}: {cause.reason}, {counted(cause.traces, 'trace')}{normal}: {_safe(cause.text)}"]
        lines += [f"    such as {', '.join(map(_safe, cause.examples))}"] if cause.examples else []
        lines += [f"    key that may fix it: {cause.key}"] if cause.key else []
        print_lines(*lines, out=out)


def _places(where: Mapping[str, int]) -> str:
    shown = [f"{place} {n:,}" for place, n in list(where.items())[:WHERE] if place]
    return ", ".join(shown) + (", …" if len(where) > WHERE else "")


def _drawn(found: Assembled, spans: Sequence[Span]) -> list[Tree]:
    """Draw spans as trees, with a root for each span whose parent is absent, missing or already drawn."""
    there = {
        span.span_id: span
        for span in sorted(spans, key=lambda s: (s.start or datetime.min.replace(tzinfo=UTC), s.span_id))
    }
    below: dict[str, list[Span]] = defaultdict(list)
    for span in there.values():
        below[span.parent_id or ""].append(span)
    taken: dict[str, list[str]] = defaultdict(list)
    for name in (*FIELDS, "generator"):
        for span_id in found.found.spans.get(name, ()):
            taken[span_id].append(name)
    drawn: set[str] = set()

    def draw(span: Span) -> Tree:
        drawn.add(span.span_id)
        branch = Tree(_label(span, taken[span.span_id]))
        for line in _lines(span, found.trace if "chunks" in taken[span.span_id] else None):
            branch.add(line)
        for child in below[span.span_id]:
            if child.span_id not in drawn:
                branch.add(draw(child))
        return branch

    tops = [s for s in there.values() if s.parent_id not in there]
    # In a cycle, start with any span.
    return [draw(span) for span in [*tops, *there.values()] if span.span_id not in drawn]


def _label(span: Span, taken: Sequence[str]) -> Text:
    seconds = f"{(span.end - span.start).total_seconds():.3f} s" if span.start and span.end else "no end"
    label = Text.assemble((_safe(span.name) or "(no name)", "bold"), f"  {span.kind}", f"  {seconds}")
    if span.model:
        label.append(f"  {_safe(span.model)}")
    if span.error:
        label.append("  failed", "red")
    if taken:
        label.append(f"  ← {', '.join(taken)}", "green")
    return label


def _lines(span: Span, trace: Trace | None) -> list[Text]:
    """Input, output and documents of a span, truncated. Documents that are chunks have their number."""
    lines = [Text(f"{name}: {excerpt(_safe(str(value)), limit=160)}", "dim") for name, value in
             (("input", span.input), ("output", span.output)) if value not in (None, "")]  # fmt: skip
    for document in span.documents or (documents_of(span.output) if span.kind in ("retriever", "reranker") else ()):
        number = _number(document, trace)
        mark = f"[{number}]" if number else " – "
        style = "green" if number else "dim"
        lines.append(Text(f"{mark} {_safe(document.id or 'no id')}: {excerpt(_safe(document.text), limit=120)}", style))
    return lines


def _number(document: Document, trace: Trace | None) -> int | None:
    for number, chunk in enumerate(trace.chunks if trace else (), 1):
        if chunk.text == document.text or (document.id and not document.text and chunk.chunk_id == document.id):
            return number
    return None


def _trace(trace: Trace) -> Text:
    lines = Text()
    for name in ("timestamp", "app", "generator", "session", "question", "answer"):
        lines.append(f"{name:<11}", "bold").append(_safe(str(getattr(trace, name) or "–")) + "\n")
    for number, chunk in enumerate(trace.chunks, 1):
        lines.append(f"[{number}] ", "bold").append(f"{_safe(chunk.chunk_id)}: {excerpt(_safe(chunk.text))}\n")
    return lines


def _safe(text: str) -> str:
    """Remove terminal control sequences from a text."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c.isspace() else "\ufffd" for c in text)
