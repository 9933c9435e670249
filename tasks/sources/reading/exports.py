"""Records of export files: JSON lines, CSV and Parquet.

A trace may be cut over the files of an export. So a source reads all files that one of its paths names, for one day
where the path holds `{date}`, as one `SourceFile`. Left out: what a record means.
"""

import csv
import io
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.core import keys
from tasks.core.errors import SourceError
from tasks.sources import Reject, SourceFile
from tasks.sources.reading import files
from tasks.sources.reading.rejects import reject, undecodable
from tasks.sources.reading.values import decode_json

BLOCK_BYTES = 4 << 20
ROWS = 256  # of a Parquet file that are decoded at a time

Record: TypeAlias = dict[str, Any]
Options: TypeAlias = Mapping[str, object]


def find(paths: list[str], base: Path, options: Options, start: date, end: date) -> list[SourceFile]:
    """What each path names, as one file: its fingerprint changes when any of its files does.

    Raises:
        SourceError: As `files.find`.
    """
    found: dict[tuple[str, date | None], list[tuple[str, str]]] = defaultdict(list)
    for path in paths:
        for file in files.find([path], base, options, start, end):
            name = path.replace("{date}", file.day.isoformat()) if file.day else path
            found[name, file.day].append((file.path, file.fingerprint))
    return [SourceFile(name, keys.version(states), day, name) for (name, day), states in sorted(found.items())]


def read(path: str, base: Path, options: Options) -> Iterator[Record | Reject]:
    """The records of all files that a path names, and rejects for what is none.

    A Parquet file is held in memory as it is stored; its rows are decoded a few at a time.

    Args:
        path: As `find` gives it.

    Raises:
        SourceError: A file can't be read, is damaged, or has a suffix that is not known.
    """
    for file in files.find([path], base, options, date.min, date.min):
        blocks = files.read_blocks(file.path, base, options, BLOCK_BYTES)
        suffixes = [s for s in Path(file.path).suffixes if s not in files.CODECS]
        match suffixes[-1:]:
            case [".jsonl" | ".ndjson"]:
                yield from _json_lines(blocks)
            case [".csv"]:
                yield from _csv(blocks)
            case [".parquet"]:
                yield from _parquet(b"".join(blocks), file.path)
            case _:
                raise SourceError(
                    f"{file.path} is no export that can be read: its name must end in .jsonl, .csv or .parquet. "
                    "Export in one of these formats, or correct `paths` in the source's config."
                )


def _json_lines(blocks: Iterator[bytes]) -> Iterator[Record | Reject]:
    for number, line in enumerate(_lines(blocks), 1):
        if not line.strip():
            continue
        try:
            record = decode_json(line)
        except (ValueError, RecursionError) as exc:
            yield undecodable(number, line, exc)
            continue
        if isinstance(record, dict):
            yield record
        else:
            yield reject(number, line, "wrong_type", f"Expected `object`, got `{type(record).__name__}`")


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for block in blocks:
        *lines, tail = block.split(b"\n")
        for line in lines:
            yield bytes(rest + line)
            rest.clear()
        rest += tail
    yield bytes(rest)


def _csv(blocks: Iterator[bytes]) -> Iterator[Record | Reject]:
    """Every value is a text; an empty one is left out."""
    rows = csv.reader(io.TextIOWrapper(io.BufferedReader(_Stream(blocks)), "utf-8-sig", "replace", newline=""))
    names = _row(rows) or []
    while (row := _row(rows)) is not None:
        if len(row) == len(names):
            yield {name: value for name, value in zip(names, row, strict=True) if value}
        elif row:
            detail = f"row of {len(row)} cells, {len(names)} columns"
            yield Reject(rows.line_num, None, "malformed_span", detail, b"")


def _row(rows: Any) -> list[str] | None:  # noqa: ANN401 - a reader of the csv module
    """The next row; None at the end. A prompt is longer than the 131,072 characters that Python takes for a cell."""
    before = csv.field_size_limit(sys.maxsize)  # of the whole process: set for this row only
    try:
        return next(rows, None)
    finally:
        csv.field_size_limit(before)


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - a writable buffer
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _parquet(data: bytes, path: str) -> Iterator[Record]:
    try:
        for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(ROWS):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(
            f"{path} is damaged or was cut off ({type(exc).__name__}). Nothing of it is kept; export it again."
        ) from exc
