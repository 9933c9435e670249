"""Convert traces to an Arrow table.

Columns are built from one list per column, and lists of structs from flat arrays and offsets. A dictionary per row
would take longer than decoding the row.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import xxhash

from tasks.core.schemas import CHUNK, CITATION, I64, NEVER_READ, RATING, TRACES, S
from tasks.core.types import Trace
from tasks.sources import BATCH

Array: TypeAlias = "pa.Array[Any]"

_ENCODER = msgspec.json.Encoder(order="deterministic")
_BUILT_APART = {"chunks", "citations", "tags", *NEVER_READ}


def content_hash(trace: Trace) -> str:
    """Return a hash of a trace without its feedback, which may change later. The timestamp must be in UTC.

    The decoded trace is hashed, so the order of keys, whitespace and unknown fields don't matter. The hash is not
    cryptographic, for speed: it only distinguishes copies from conflicts.
    """
    unrated = trace if trace.feedback is None else msgspec.structs.replace(trace, feedback=None)
    return xxhash.xxh3_128_hexdigest(_ENCODER.encode(unrated))


def to_table(traces: Sequence[Trace], lines: Sequence[int]) -> pa.Table:
    """Return the traces as a table with schema `BATCH`.

    Args:
        traces: Traces with timestamps in UTC.
        lines: Line of each trace in its file.

    Raises:
        pyarrow.ArrowInvalid: A whole number does not fit its column.
        OverflowError: The same, for numbers beyond 64 bits.
    """
    columns = {f.name: _column(traces, f) for f in TRACES.stored if f.name not in _BUILT_APART}
    columns["chunks"] = _lists([t.chunks for t in traces], CHUNK)
    columns["citations"] = _lists([t.citations for t in traces], CITATION)
    columns["feedback"] = pa.StructArray.from_arrays(
        [
            pa.array([None if t.feedback is None else getattr(t.feedback, f.name) for t in traces], f.type)
            for f in RATING
        ],
        fields=list(RATING),
        mask=pa.array([t.feedback is None for t in traces], pa.bool_()),
    )
    columns["tags"] = pa.MapArray.from_arrays(
        _offsets([t.tags for t in traces]),
        pa.array([key for t in traces for key in t.tags], S),
        pa.array([value for t in traces for value in t.tags.values()], S),
    )
    columns |= {name: pa.nulls(len(traces), TRACES.schema.field(name).type) for name in NEVER_READ}
    columns["content_hash"] = pa.array([content_hash(t) for t in traces], S)
    columns["line"] = pa.array(lines, I64)
    return pa.Table.from_arrays([columns[name] for name in BATCH.names], schema=BATCH)


def _column(rows: Sequence[object], field: "pa.Field[Any]") -> Array:
    """Return one attribute of all rows as a column."""
    column: Array = pa.array(list(map(attrgetter(field.name), rows)), field.type)
    return column


def _offsets(values: Sequence[Collection[object]]) -> list[int]:
    """Return the offsets of the lists in the flat array of all items: one more than there are lists."""
    return list(accumulate(map(len, values), initial=0))


def _lists(values: Sequence[tuple[object, ...] | None], struct: pa.StructType) -> Array:
    """Return a column of lists of structs, with nulls. Struct fields are attributes of the items."""
    flat = [item for items in values if items for item in items]
    return pa.ListArray.from_arrays(
        _offsets([items or () for items in values]),
        pa.StructArray.from_arrays([_column(flat, f) for f in struct], fields=list(struct)),
        type=pa.list_(struct),
        mask=pa.array([items is None for items in values], pa.bool_()),
    )
