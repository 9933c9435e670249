"""Trace sources: where the answered questions come from.

One file per kind: a pydantic model `Config` and `build(config, base) -> Source`. Its settings are a file in
`configs/sources/`. The ingest stage gates, deduplicates and stores the rows.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, Protocol, cast

import pyarrow as pa

from tasks.core.config import WriteBack
from tasks.core.plugins import configured
from tasks.core.schemas import I64, RATING, TRACES, col

Reason = Literal[
    "malformed_json",
    "invalid_utf8",
    "wrong_type",
    "missing_field",
    "unknown_field",
    "empty_id",
    "nul_character",
    "timestamp_without_zone",
    "bad_timestamp",
    "out_of_range",
    "line_too_long",
    "malformed_row",
    "malformed_span",
    "no_root",
    "several_roots",
    "no_question",
    "question_holds_context",
    "no_answer",
    "no_chunk_text",
    "clocks_disagree",
]

# Reasons that say nothing against a source: the application failed, or wrote no answer.
NORMAL: frozenset[str] = frozenset({"no_answer"})

BATCH = pa.schema(
    [
        *TRACES.stored,
        col("feedback", RATING, "The user's feedback."),
        col("line", I64, "Line of the file, from 1.", null=False),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of traces in the state in which it was found.

    Attributes:
        path: Display name: relative to the config's directory or a URL, as the user wrote it.
        fingerprint: Hash of the size and the ETag or modification time; another state has another one.
        day: The day that stands for `{date}` in its path; None where the path has none.
        place: Where it is from, if other files of this place may hold the same rows again, as windows of time do. A
            row of it that was refused before is not refused again.
    """

    path: str
    fingerprint: str
    day: date | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that can't be a trace.

    Attributes:
        line: Line of the file, from 1.
        trace_id: The row's id, where it could be read.
        detail: JSON path and types, never the text of a trace.
        raw: The line as it came, without its newline; may hold bytes that are not UTF-8, and NUL.
        day: Day of the row's timestamp, UTC, where it could be read.
    """

    line: int
    trace_id: str | None
    reason: Reason
    detail: str
    raw: bytes
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of one file. Always `rows == table.num_rows + len(rejects)`.

    Attributes:
        table: The good rows, schema `BATCH`, in the order of the file.
        rejects: The others, in the order of the file.
        rows: Lines that are not blank.
    """

    table: pa.Table
    rejects: list[Reject]
    rows: int


class Source(Protocol):
    """Somewhere that traces come from."""

    @property
    def write_back(self) -> WriteBack | None:
        """Which scores go back to where the traces are; None where none do."""

    def files(self, start: date, end: date) -> list[SourceFile]:
        """What there is to read for the days `start` to `end`, both inclusive, sorted by path.

        Raises:
            SourceError: A file that is named outright is missing, or the place can't be listed.
        """

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """The rows of one file, in bounded memory.

        Raises:
            SourceError: The file can't be read to its end. Batches handed out before must then be thrown away.
        """


def load(settings: Mapping[str, object], where: str, base: Path) -> Source:
    """The source that a config file describes.

    Args:
        settings: The config as read; its `kind` picks the module.
        where: The config file, as the user named it.
        base: Directory that relative paths start in.

    Raises:
        ConfigError: The kind is unknown, or the settings don't fit it.
    """
    module, config = configured(sys.modules[__name__], settings, "source", where)
    return cast("Source", module.build(config, base))
