"""Lines of files, in bounded memory, however long one of them is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.sources.reading.rejects import RAW_BYTES

MAX_LINE_BYTES = 16 << 20
MOST_LINES = 8192  # at a time: a refused line costs about a kilobyte, however short it is

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Consecutive lines, the first of which is line `first`; or the head of one that goes on for `dropped` bytes."""

    first: int
    lines: list[bytes]
    dropped: int = 0


def cut(blocks: Iterable[bytes], limit: int) -> Iterator[Lines]:
    """Cut blocks at newlines, wherever they end, holding at most one block and `limit` bytes of an unfinished line."""
    number, rest, dropped = 1, bytearray(), 0
    for block in _without_mark(blocks):
        lines = block.split(b"\n")
        tail = lines.pop()
        if lines and dropped:
            yield Lines(number, [bytes(rest)], dropped + len(lines.pop(0)))
            number, dropped, rest = number + 1, 0, bytearray()
        elif lines:
            lines[0] = bytes(rest) + lines[0]
            rest = bytearray()
        for at in range(0, len(lines), MOST_LINES):
            yield Lines(number + at, lines[at : at + MOST_LINES])
        number += len(lines)
        if dropped:
            dropped += len(tail)
            continue
        rest += tail
        if len(rest) > limit:
            head = min(limit, RAW_BYTES)
            dropped = len(rest) - head
            del rest[head:]
    if rest or dropped:
        yield Lines(number, [bytes(rest)], dropped)


def _without_mark(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Take off the byte order mark that some programs put in front of UTF-8."""
    rest = iter(blocks)
    head = b""
    while len(head) < len(_MARK) and (block := next(rest, b"")):
        head += block
    yield head.removeprefix(_MARK)
    yield from rest
