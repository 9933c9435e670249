"""Group spans into traces in bounded memory, and return the traces as batches of a source."""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO
from zlib import crc32

from tasks.sources import Batch, Reject
from tasks.sources.reading.rows import to_table
from tasks.sources.spans.assembly import assemble
from tasks.sources.spans.span import Assembled, Span, SpanSettings

PILES = 64  # temporary files that spans are divided into by trace, so the spans of one fit into memory
PILE_BYTES = 1 << 20  # size at which a pile moves from memory to disk
BATCH_TRACES = 1_000


def batches(found: Iterable[Assembled]) -> Iterator[Batch]:
    """Group traces and rejects into batches of at most `BATCH_TRACES`."""
    rest = iter(found)
    while group := list(islice(rest, BATCH_TRACES)):
        good = [(a.line, a.trace) for a in group if a.trace]
        rejects = [a.reject for a in group if a.reject]
        yield Batch(to_table([t for _, t in good], [n for n, _ in good]), rejects, len(group))


def traces(
    items: Iterable[Span | Reject], settings: SpanSettings, keep: Callable[[Sequence[Span]], bool] = bool
) -> Iterator[Assembled]:
    """Build traces from spans in any order. Large piles of spans are kept in temporary files to bound the memory.

    Args:
        items: Spans, and rejects of malformed spans. Rejects are returned with a new line number.
        keep: Whether to build the trace of these spans. Other traces are dropped without a reject.
    """
    line = 0
    with ExitStack() as stack:
        piles = [stack.enter_context(SpooledTemporaryFile(max_size=PILE_BYTES)) for _ in range(PILES)]
        for item in items:
            refused = _put(item, piles) if isinstance(item, Span) else item
            if refused:
                line += 1
                yield Assembled(line, reject=replace(refused, line=line))
        for pile in piles:
            groups: dict[str, list[Span]] = defaultdict(list)
            end = pile.tell()
            pile.seek(0)
            while pile.tell() < end:
                span = pickle.load(pile)  # noqa: S301 - written above
                groups[span.trace_id].append(span)
            for spans in (groups[i] for i in sorted(groups)):
                if keep(spans):
                    line += 1
                    yield assemble(spans, settings, line)


def first(items: Iterable[Span | Reject], most: int, counts: Callable[[Span], bool]) -> Iterator[Span | Reject]:
    """Yield the spans of the first `most` traces, without reading a large file to the end.

    Reading stops after the first spans of another `most` traces, so the first ones are likely to be complete.

    Args:
        most: Number of traces.
        counts: Whether to count the trace of a span. Spans of traces that are not counted are yielded too.
    """
    ranks: dict[str, int] = {}
    for item in items:
        if isinstance(item, Span):
            if item.trace_id not in ranks and counts(item):
                ranks[item.trace_id] = len(ranks)
            if len(ranks) > 2 * most:
                return
            if ranks.get(item.trace_id, 0) >= most:
                continue
        yield item


def _put(span: Span, piles: Sequence[IO[bytes]]) -> Reject | None:
    """Write a span to the pile of its trace. Returns a reject if it is nested too deeply."""
    try:
        data = pickle.dumps(span)
    except RecursionError:
        return Reject(1, span.trace_id, "malformed_span", "an input or output is nested too deeply", b"")
    piles[crc32(span.trace_id.encode(errors="surrogatepass")) % PILES].write(data)
    return None
