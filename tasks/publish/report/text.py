"""Format texts and numbers for pages: file names, marked pieces, excerpts, numbers.

Offsets count characters (code points), as in `claims.start` and `evidence.start`. Templates escape the results.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tasks.core.keys import key

NOT_APPLICABLE = "n/a"
SLUG_HEX = 12
Span = tuple[int, int, int]
Piece = tuple[str, tuple[int, ...]]


def slug(trace_id: str) -> str:
    """A file name for a trace that is safe on every file system: the readable part of the id, and a hash."""
    legible = re.sub(r"[^A-Za-z0-9_]+", "-", trace_id)[:40].strip("-")
    digest = key(trace_id, size=SLUG_HEX)
    return f"{legible}-{digest}" if legible else digest


def pieces(text: str, spans: Iterable[Span]) -> list[Piece]:
    """Cut `text` at the ends of spans.

    Args:
        spans: `(start, end, tag)`; they may overlap. Empty spans and parts outside the text are ignored.

    Returns:
        `(piece, tags that cover it)` in order. The concatenated pieces are `text`.
    """
    valid = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    cuts = sorted({0, len(text), *(start for start, _, _ in valid), *(end for _, end, _ in valid)})
    found: list[Piece] = []
    open_spans: list[Span] = []
    coming = 0
    for a, b in pairwise(cuts):
        open_spans = [span for span in open_spans if span[1] > a]
        while coming < len(valid) and valid[coming][0] == a:
            open_spans.append(valid[coming])
            coming += 1
        found.append((text[a:b], tuple(dict.fromkeys(tag for _, _, tag in open_spans))))
    return found


def excerpt(text: str, start: int = 0, end: int | None = None, limit: int = 320) -> str:
    """`text[start:end]` on one line, cut at a word near `limit` characters, with "…" where text is left out."""
    stop = len(text) if end is None else min(end, len(text))
    start = min(max(start, 0), stop)
    window = " ".join(text[start:stop].split())
    cut = window
    if len(window) > limit:
        cut = window[:limit]
        cut = (cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut).rstrip()
    before = "… " if text[:start].strip() else ""
    after = " …" if len(cut) < len(window) or text[stop:].strip() else ""
    return f"{before}{cut}{after}"


def number(value: float | None, digits: int = 2) -> str:
    """Format a number; None is "n/a", never 0."""
    return NOT_APPLICABLE if value is None else f"{value:.{digits}f}"


def percent(part: float | None, whole: float | None = 1, digits: int = 0) -> str:
    """Format a share in percent; "n/a" if there is nothing to share."""
    return NOT_APPLICABLE if part is None or not whole else f"{100 * part / whole:.{digits}f}%"


def count(value: int | None) -> str:
    """Format an integer with thin spaces between thousands."""
    return NOT_APPLICABLE if value is None else f"{value:,}".replace(",", "\u202f")


def plural(value: int, one: str, many: str = "") -> str:
    """A count and its noun."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def moment(value: datetime | None) -> str:
    """Format a time zone aware datetime in UTC."""
    return NOT_APPLICABLE if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def duration(value: timedelta | float) -> str:
    """Format a duration with its two largest units."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def listed(words: Sequence[str]) -> str:
    """Join words as an English list: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
