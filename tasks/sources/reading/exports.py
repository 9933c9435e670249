"""Records of export files: JSON lines, CSV, Parquet, JSON, and Arrow streams.

The spans of a trace may be spread over the files of an export. So all files of a path (or of a day, for a path with
`{date}`) are read as one `SourceFile`.
"""

import csv
import io
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
from tasks.sources.reading.lines import MAX_LINE_BYTES, cut
from tasks.sources.reading.rejects import reject, too_long, undecodable
from tasks.sources.reading.values import decode_json

BLOCK_BYTES = 4 << 20
BUFFER_BYTES = 1 << 20  # of a column that are read at a time
ROWS = 256  # that are decoded at a time

Record: TypeAlias = dict[str, Any]
Options: TypeAlias = Mapping[str, object]


def find(paths: list[str], base: Path, options: Options, start: date, end: date) -> list[SourceFile]:
    """Return one `SourceFile` per path and day. Its fingerprint changes when any of its files changes.

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
    """Yield the records of all files of a path, and rejects of invalid records.

    Args:
        path: A path from `find`.

    Raises:
        SourceError: As `records`.
    """
    for file in files.find([path], base, options, date.min, date.min):
        for _, record in records(file.path, base, options):
            yield record


def records(
    path: str, base: Path, options: Options, *, strict: bool = False, listed: str | None = None
) -> Iterator[tuple[int, Record | Reject]]:
    """Yield the records of one file, and rejects of invalid records, each with its line or number.

    Memory holds some records at a time, except for a `.json` file, which is read completely.

    Args:
        path: A path from `files.find`.
        strict: Whether to reject a row that is not UTF-8. Otherwise, invalid bytes are replaced by U+FFFD.
        listed: Key of the list in a `.json` file whose value is an object.

    Raises:
        SourceError: The file can't be read, is damaged, or has an unknown suffix.
    """
    suffixes = [s for s in Path(path).suffixes if s not in files.CODECS]
    match suffixes[-1:]:
        case [".jsonl" | ".ndjson"]:
            yield from _json_lines(files.read_blocks(path, base, options, BLOCK_BYTES), strict=strict)
        case [".csv"]:
            yield from _csv(files.read_blocks(path, base, options, BLOCK_BYTES), path, strict=strict)
        case [".json"]:
            yield from _json(b"".join(files.read_blocks(path, base, options, BLOCK_BYTES)), path, listed)
        case [".parquet"] | [".arrow"]:
            yield from _arrow(path, base, options)
        case _:
            raise SourceError(
                f"{path} is no export that can be read: its name must end in .jsonl, .csv, .parquet, .json or .arrow, "
                "and .gz or .zst if it is compressed. Export in one of these formats, or correct `paths` in the "
                "source's config."
            )


def _json_lines(blocks: Iterator[bytes], *, strict: bool) -> Iterator[tuple[int, Record | Reject]]:
    for piece in cut(blocks, MAX_LINE_BYTES):
        for number, line in enumerate(piece.lines, piece.first):
            if piece.dropped or len(line) > MAX_LINE_BYTES:
                yield number, too_long(number, line, len(line) + piece.dropped, MAX_LINE_BYTES)
            elif line.strip():
                try:
                    if strict:
                        line.decode()
                    yield number, _record(number, line, decode_json(line))
                except (ValueError, RecursionError) as exc:
                    yield number, undecodable(number, line, exc)


def _record(number: int, line: bytes, value: object) -> Record | Reject:
    if isinstance(value, dict):
        return value
    return reject(number, line, "wrong_type", f"Expected `object`, got `{type(value).__name__}`")


def _json(data: bytes, path: str, listed: str | None) -> Iterator[tuple[int, Record | Reject]]:
    try:
        value = decode_json(data)
    except (ValueError, RecursionError) as exc:
        raise _damaged(path, exc) from exc
    found = value.get(listed) if isinstance(value, dict) else value
    if not isinstance(found, list):
        where = f"no list `{listed}`" if listed else "no list"
        raise SourceError(f"{path} holds {where}. Correct `paths` in the source's config, or its `kind`.")
    for number, item in enumerate(found, 1):
        yield number, _record(number, b"", item)


def _csv(blocks: Iterator[bytes], path: str, *, strict: bool) -> Iterator[tuple[int, Record | Reject]]:
    """Yield the rows of a CSV file. Values are texts; empty values are None."""
    errors = "surrogateescape" if strict else "replace"
    rows = csv.reader(io.TextIOWrapper(io.BufferedReader(_Stream(blocks)), "utf-8-sig", errors, newline=""))
    names = _row(rows, path) or []
    if strict and not all(_is_text(name) and "\0" not in name for name in names):
        raise SourceError(f"{path} is not encoded in UTF-8. Nothing of it is kept; write it again in UTF-8.")
    while (row := _row(rows, path)) is not None:
        line = rows.line_num
        if len(row) == len(names):
            if strict and not all(map(_is_text, row)):
                raw = ",".join(row).encode(errors="surrogateescape")
                yield line, Reject(line, None, "invalid_utf8", "a cell is not UTF-8", raw)
            else:
                yield line, {name: value or None for name, value in zip(names, row, strict=True)}
        elif row:
            detail = f"row of {len(row)} cells, {len(names)} columns"
            yield line, Reject(line, None, "malformed_row", detail, b"")


def _is_text(cell: str) -> bool:
    """Whether a cell was valid UTF-8. Invalid bytes were decoded as lone surrogates."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _row(rows: Any, path: str) -> list[str] | None:  # noqa: ANN401 - a reader of the csv module
    """The next row; None at the end. A prompt is longer than the 131,072 characters that Python takes for a cell."""
    before = csv.field_size_limit(MAX_LINE_BYTES)  # of the whole process: set for this row only
    try:
        return next(rows, None)
    except csv.Error as exc:  # such as a quote that is never closed
        raise _damaged(path, exc) from exc
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


def _arrow(path: str, base: Path, options: Options) -> Iterator[tuple[int, Record]]:
    with files.seekable(path, base, options) as file:
        try:
            if ".parquet" in Path(path).suffixes:
                # Without buffers, memory would hold each column of a row group as it is stored.
                batches = pq.ParquetFile(file, buffer_size=BUFFER_BYTES).iter_batches(ROWS)
            else:
                batches = iter(pa.ipc.open_stream(file))
            pieces = (b.slice(at, ROWS) for b in batches for at in range(0, b.num_rows, ROWS))
            yield from enumerate((record for piece in pieces for record in piece.to_pylist()), 1)
        except (pa.ArrowException, OSError) as exc:
            raise _damaged(path, exc) from exc


def _damaged(path: str, exc: Exception) -> SourceError:
    return SourceError(
        f"{path} is damaged or was cut off ({type(exc).__name__}). Nothing of it is kept; export it again."
    )
