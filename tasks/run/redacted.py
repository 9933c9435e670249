"""Traces whose text is gone (`retention.py`): no stage reads them again, and what was made of them stays as it is.

A part of `traces` without all of its texts says so by its `inputs` token. Whatever is computed of it again leaves these
traces out, and their rows are taken over from what was written before.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import REDACTIONS, TS, Table
from tasks.store.lake import Lake, Part, conform

MARK = "text_redacted_at"


def removed(part: Part) -> pa.Array:
    """Ids of the traces of a part of `traces` whose text is gone."""
    if not part.inputs():
        return pa.array([], pa.string())
    marks = part.read(["trace_id", MARK])
    return marks.filter(pc.is_valid(marks[MARK]))["trace_id"].combine_chunks()


def kept(part: Part, rows: pa.Table) -> pa.Table:
    """Of rows with a `trace_id`, made of a part of `traces`, those of traces whose text is here."""
    gone = removed(part)
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], gone))) if len(gone) else rows


def marked(part: Part, columns: list[str]) -> pa.Table:
    """Columns of a part of `traces`, and beside them when their text was removed."""
    rows = part.read([*columns, MARK])
    return rows if MARK in rows.column_names else rows.append_column(MARK, pa.nulls(rows.num_rows, TS))


def with_redacted(lake: Lake, table: Table, name: str, rows: pa.Table, part: Part, *partition: str) -> pa.Table:
    """Rows that take the place of a part, but for its rows of traces whose text is gone: those can't be made again.

    Args:
        name: Of the part that is written.
        rows: Computed now; of a trace without text, what can be told without any.
        part: The part of `traces` that they are made of.
        partition: Of the part that is written.
    """
    gone = removed(part)
    existing = lake.find(table, name, *partition) if len(gone) else None
    if existing is None:
        return rows
    before = whole(existing, table)
    before = before.filter(pc.is_in(before["trace_id"], gone))
    rows = rows.filter(pc.invert(pc.is_in(rows["trace_id"], before["trace_id"])))
    return pa.concat_tables([conform(rows, table, partition), conform(before, table)])


def whole(part: Part, table: Table) -> pa.Table:
    """A part's rows with all columns that its table has today."""
    rows = part.read()
    for column in table.schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, column.type))
    return rows


def requested(lake: Lake) -> frozenset[str]:
    """Ids of all traces whose text was ever asked to be removed."""
    return frozenset(t for part in lake.parts(REDACTIONS) for t in part.read(["trace_id"])["trace_id"].to_pylist())
