"""Trace sources: readers of answered questions.

Each module here is one kind of source, with a pydantic model `Config` and a function `build(config, base) -> Source`. A
source's settings are a file in `configs/sources/`. The ingest stage gates, deduplicates and stores the rows.
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

# Reasons that are no fault of the source: the application failed, or wrote no answer.
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
    """One file of traces, in its state when it was listed.

    Attributes:
        path: Display name, as the user wrote it: a URL, or a path relative to the config's directory.
        fingerprint: Hash of the size and the ETag or modification time. It changes when the file changes.
        day: Day that replaces `{date}` in the path; None if the path has no `{date}`.
        place: Store that the file belongs to, if several of its files may contain the same rows (time windows do);
            otherwise None. A row that was rejected once for a place is not rejected for it again.
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
        trace_id: The row's id; None if it can't be read.
        detail: JSON path and types, never the text of a trace.
        raw: The original line without its newline. It may contain invalid UTF-8 and NUL.
        day: Day of the row's timestamp in UTC; None if it can't be read.
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
        table: Valid rows in file order, with schema `BATCH`.
        rejects: Rejected rows in file order.
        rows: Number of non-blank lines.
    """

    table: pa.Table
    rejects: list[Reject]
    rows: int


class Source(Protocol):
    """A place to read traces from."""

    @property
    def write_back(self) -> WriteBack | None:
        """Which scores are written back to the traces' store; None if none are."""

    def files(self, start: date, end: date) -> list[SourceFile]:
        """List the files for the days `start` to `end`, both inclusive, sorted by path.

        Raises:
            SourceError: A file that is named without a pattern is missing, or a location can't be listed.
        """

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """Read the rows of one file, in bounded memory.

        Raises:
            SourceError: The file can't be read to its end. The caller must then discard earlier batches.
        """


def load(settings: Mapping[str, object], where: str, base: Path) -> Source:
    """Create the source from its config file.

    Args:
        settings: The parsed config file. `kind` selects the module.
        where: The config file, as the user wrote it.
        base: Directory for relative paths.

    Raises:
        ConfigError: The kind is unknown, or the settings don't fit it.
    """
    module, config = configured(sys.modules[__name__], settings, "source", where)
    return cast("Source", module.build(config, base))
