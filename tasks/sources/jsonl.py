"""Traces as JSON lines: one object per line, plain or compressed, in files or in an object store.

docs/trace-format.md describes the format. Every non-blank line is returned exactly once, as a trace or as a reject with
its reason.
"""

from collections.abc import Iterator
from datetime import UTC, date
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pyarrow as pa
from pydantic import Field

from tasks.core.config import Settings
from tasks.core.types import Chunk, Citation, Feedback, Trace
from tasks.sources import Batch, Reject, Source, SourceFile
from tasks.sources.reading import files
from tasks.sources.reading.lines import MAX_LINE_BYTES, Lines, cut
from tasks.sources.reading.rejects import nul_path, reject, too_large, too_long, undecodable
from tasks.sources.reading.rows import to_table

BLOCK_BYTES = 4 << 20

_BLANK = b" \t\r"


class Config(Settings):
    """Settings of a `jsonl` source.

    Attributes:
        paths: Files, globs or URLs. `{date}` stands for each requested day, as YYYY-MM-DD. Relative paths start at
            the config file's directory.
        storage_options: Options for fsspec, such as `endpoint_url`. No secrets: credentials come from the environment.
        unknown_fields: What to do with a line that has an unknown field.
    """

    kind: Literal["jsonl"]
    paths: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    storage_options: dict[str, object] = Field(default_factory=dict)
    unknown_fields: Literal["ignore", "quarantine"] = "ignore"


class StrictChunk(Chunk, frozen=True, gc=False, forbid_unknown_fields=True):
    """A chunk without unknown fields."""


class StrictCitation(Citation, frozen=True, gc=False, forbid_unknown_fields=True):
    """A citation without unknown fields."""


class StrictFeedback(Feedback, frozen=True, gc=False, forbid_unknown_fields=True):
    """Feedback without unknown fields."""


class StrictTrace(Trace, frozen=True, gc=False, forbid_unknown_fields=True):
    """A trace without unknown fields at any depth."""

    chunks: tuple[StrictChunk, ...] = ()
    citations: tuple[StrictCitation, ...] | None = None
    feedback: StrictFeedback | None = None


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory."""
    return JsonlSource(config, base)


class JsonlSource:
    """Reads traces from JSON lines.

    Args:
        block_bytes: Number of bytes to read per batch.
        max_line_bytes: Limit for a line. Longer lines are rejected without being held in memory.
    """

    def __init__(
        self, config: Config, base: Path, *, block_bytes: int = BLOCK_BYTES, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._config = config
        self._base = base
        self._block_bytes = block_bytes
        self._max_line_bytes = max_line_bytes
        row: type[Trace] = StrictTrace if config.unknown_fields == "quarantine" else Trace
        self._decoder = msgspec.json.Decoder(row)

    write_back = None  # scores can't be written to files

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`."""
        return files.find(self._config.paths, self._base, self._config.storage_options, start, end)

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """See `tasks.sources.Source.read`."""
        blocks = files.read_blocks(file.path, self._base, self._config.storage_options, self._block_bytes)
        for piece in cut(blocks, self._max_line_bytes):
            batch = self._parse(piece)
            if batch.rows:
                yield batch

    def _parse(self, piece: Lines) -> Batch:
        """Decode some lines. This loop dominates the cost of ingestion, so it leaves out checks that few rows need."""
        decode, limit = self._decoder.decode, self._max_line_bytes
        traces: list[Trace] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, line in enumerate(piece.lines, piece.first):
            if piece.dropped or len(line) > limit:
                rejects.append(too_long(number, line, len(line) + piece.dropped, limit))
                continue
            try:
                if not line.isascii():
                    line.decode()  # the decoder skips unknown keys without checking their UTF-8
                trace = decode(line)
                if trace.timestamp.tzinfo is not UTC:
                    trace = msgspec.structs.replace(trace, timestamp=trace.timestamp.astimezone(UTC))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as exc:
                if line.strip(_BLANK):
                    rejects.append(undecodable(number, line, exc))
                continue
            if b"\\u0000" in line and (path := nul_path(msgspec.to_builtins(trace))):
                detail = f"`str` with a NUL character - at `{path}`"  # which databases can't store
                rejects.append(reject(number, line, "nul_character", detail))
                continue
            traces.append(trace)
            numbers.append(number)
        try:
            table = to_table(traces, numbers)
        except (pa.ArrowInvalid, OverflowError):  # an integer is too large for its column
            details = [too_large(trace) for trace in traces]
            rejects += [
                reject(number, piece.lines[number - piece.first], "out_of_range", detail)
                for number, detail in zip(numbers, details, strict=True)
                if detail
            ]
            rejects.sort(key=lambda r: r.line)
            good = [i for i, detail in enumerate(details) if not detail]
            table = to_table([traces[i] for i in good], [numbers[i] for i in good])
        return Batch(table, rejects, table.num_rows + len(rejects))
