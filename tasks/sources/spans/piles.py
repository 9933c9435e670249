"""Spans in any order, sorted into traces in bounded memory, and handed out as a source does."""

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

PILES = 64  # that spans are sorted into by trace, so that one pile fits into memory
PILE_BYTES = 1 << 20  # of a pile that are held in memory; the rest lies in a temporary file
BATCH_TRACES = 1_000


def batches(found: Iterable[Assembled]) -> Iterator[Batch]:
    """Traces and rejects as a source hands them out."""
    rest = iter(found)
    while group := list(islice(rest, BATCH_TRACES)):
        good = [(a.line, a.trace) for a in group if a.trace]
        rejects = [a.reject for a in group if a.reject]
        yield Batch(to_table([t for _, t in good], [n for n, _ in good]), rejects, len(group))


def traces(
    items: Iterable[Span | Reject], settings: SpanSettings, keep: Callable[[Sequence[Span]], bool] = bool
) -> Iterator[Assembled]:
    """The traces of spans in any order, in bounded memory: most spans wait in temporary files.

    Args:
        items: Spans; and rejects of what is no span, which are handed on with a new line number.
        keep: Whether these spans of one trace are wanted; the others are left out without a reject.
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
                span = pickle.load(pile)  # noqa: S301 - of a file that was written above
                groups[span.trace_id].append(span)
            for spans in (groups[i] for i in sorted(groups)):
                if keep(spans):
                    line += 1
                    yield assemble(spans, settings, line)


def first(items: Iterable[Span | Reject], most: int, counts: Callable[[Span], bool]) -> Iterator[Span | Reject]:
    """The spans of the traces that come first; reading ends when as many others have come, so that these are whole.

    Args:
        most: Traces.
        counts: Whether the trace of a span is one that counts; spans of other traces come along.
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
    """Lay a span on the pile of its trace; a reject if that can't be."""
    try:
        data = pickle.dumps(span)
    except RecursionError:
        return Reject(1, span.trace_id, "malformed_span", "an input or output is nested too deeply", b"")
    piles[crc32(span.trace_id.encode(errors="surrogatepass")) % PILES].write(data)
    return None
