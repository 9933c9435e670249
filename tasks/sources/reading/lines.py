"""Split files into lines in bounded memory, even with very long lines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.sources.reading.rejects import RAW_BYTES

MAX_LINE_BYTES = 16 << 20
MOST_LINES = 8192  # per `Lines`; a rejected line takes about a kilobyte of memory, however short it is

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Consecutive lines from line `first` on, or the head of one line whose other `dropped` bytes are left out."""

    first: int
    lines: list[bytes]
    dropped: int = 0


def cut(blocks: Iterable[bytes], limit: int) -> Iterator[Lines]:
    """Split blocks at newlines. Memory holds at most one block and `limit` bytes of an unfinished line."""
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
    """Remove the byte order mark that some programs write before UTF-8."""
    rest = iter(blocks)
    head = b""
    while len(head) < len(_MARK) and (block := next(rest, b"")):
        head += block
    yield head.removeprefix(_MARK)
    yield from rest
