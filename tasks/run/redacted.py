"""Redacted traces, whose text was removed (`tasks/privacy/retention.py`). Stages skip them and keep their results.

A part of `traces` with redacted traces has an `inputs` token. A stage that computes such a part again skips these
traces and copies their rows from the part that it replaces.
"""

import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import REDACTIONS, TS, Table
from tasks.store.lake import Lake, Part, conform

MARK = "text_redacted_at"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)  # JSON escapes
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def redacted_traces(part: Part) -> pa.Array:
    """Ids of the redacted traces in a part of `traces`."""
    if not part.inputs():
        return pa.array([], pa.string())
    marks = part.read(["trace_id", MARK])
    return marks.filter(pc.is_valid(marks[MARK]))["trace_id"].combine_chunks()


def unredacted(part: Part, rows: pa.Table) -> pa.Table:
    """Remove the rows of redacted traces; `rows` has a `trace_id` and was computed from `part`."""
    gone = redacted_traces(part)
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], gone))) if len(gone) else rows


def marked(part: Part, columns: list[str]) -> pa.Table:
    """Columns of a part of `traces`, with the time at which each trace was redacted (null if it was not)."""
    rows = part.read([*columns, MARK])
    return rows if MARK in rows.column_names else rows.append_column(MARK, pa.nulls(rows.num_rows, TS))


def with_redacted(lake: Lake, table: Table, name: str, rows: pa.Table, part: Part, *partition: str) -> pa.Table:
    """Return `rows` together with the existing rows of redacted traces, which can't be computed again.

    Args:
        name: Name of the part to write.
        rows: Newly computed rows. For redacted traces, only results that need no text.
        part: The part of `traces` that `rows` were computed from.
        partition: Partition of the part to write.
    """
    gone = redacted_traces(part)
    existing = lake.find(table, name, *partition) if len(gone) else None
    if existing is None:
        return rows
    before = all_columns(existing, table)
    before = before.filter(pc.is_in(before["trace_id"], gone))
    rows = rows.filter(pc.invert(pc.is_in(rows["trace_id"], before["trace_id"])))
    return pa.concat_tables([conform(rows, table, partition), conform(before, table)])


def all_columns(part: Part, table: Table) -> pa.Table:
    """Read a part with all columns of the current schema; columns that the part lacks are null."""
    rows = part.read()
    for column in table.schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, column.type))
    return rows


def requested_redactions(lake: Lake) -> frozenset[str]:
    """Ids of all traces for which redaction was ever requested."""
    return frozenset(lake.frame(REDACTIONS, columns=["trace_id"])["trace_id"])


def naming(trace_ids: Collection[str]) -> re.Pattern[str] | None:
    """Pattern that finds any of these ids in an unparsable row, see `names`; None without ids."""
    each = "|".join(re.escape(i) for i in sorted(trace_ids, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{each})(?!\w)") if each else None


def names(raw: str, ids: re.Pattern[str] | None) -> bool:
    """Whether a raw row contains one of the ids, possibly with JSON escapes. The row may be truncated JSON."""
    return ids is not None and bool(ids.search(raw) or ("\\" in raw and ids.search(_ESCAPE.sub(_character, raw))))


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2])
