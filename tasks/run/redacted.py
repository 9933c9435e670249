"""Traces whose text is gone (`tasks/privacy/retention.py`): no stage reads them again, and their results stay.

A part of `traces` that lacks texts has an `inputs` token. What a stage computes of it again leaves these traces out,
and takes their rows over from what was written before.
"""

import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import REDACTIONS, TS, Table
from tasks.store.lake import Lake, Part, conform

MARK = "text_redacted_at"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)  # of JSON
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def redacted_traces(part: Part) -> pa.Array:
    """Ids of the traces of a part of `traces` whose text is gone."""
    if not part.inputs():
        return pa.array([], pa.string())
    marks = part.read(["trace_id", MARK])
    return marks.filter(pc.is_valid(marks[MARK]))["trace_id"].combine_chunks()


def unredacted(part: Part, rows: pa.Table) -> pa.Table:
    """Rows with a `trace_id`, made of a part of `traces`, without those of redacted traces."""
    gone = redacted_traces(part)
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], gone))) if len(gone) else rows


def marked(part: Part, columns: list[str]) -> pa.Table:
    """Columns of a part of `traces`, and the time at which each text was redacted."""
    rows = part.read([*columns, MARK])
    return rows if MARK in rows.column_names else rows.append_column(MARK, pa.nulls(rows.num_rows, TS))


def with_redacted(lake: Lake, table: Table, name: str, rows: pa.Table, part: Part, *partition: str) -> pa.Table:
    """Rows that replace a part, and its rows of redacted traces, which can't be computed again.

    Args:
        name: Of the part that is written.
        rows: Computed now; of a redacted trace, what needs no text.
        part: The part of `traces` that they are made of.
        partition: Of the part that is written.
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
    """A part's rows with all columns that its table has today."""
    rows = part.read()
    for column in table.schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, column.type))
    return rows


def requested_redactions(lake: Lake) -> frozenset[str]:
    """Ids of all traces whose text was ever requested to be redacted."""
    return frozenset(lake.frame(REDACTIONS, columns=["trace_id"])["trace_id"])


def naming(trace_ids: Collection[str]) -> re.Pattern[str] | None:
    """Finds one of these ids in the text of a row that can't be read, see `names`; None for no ids."""
    each = "|".join(re.escape(i) for i in sorted(trace_ids, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{each})(?!\w)") if each else None


def names(raw: str, ids: re.Pattern[str] | None) -> bool:
    """Whether a row names one of the ids, in whatever spelling of JSON, and wherever it breaks off."""
    return ids is not None and bool(ids.search(raw) or ("\\" in raw and ids.search(_ESCAPE.sub(_character, raw))))


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2])
