"""Tables: documented, and laid out by columns that they have."""

import pyarrow as pa
import pytest

from tasks.core.schemas import TABLES, Table
from tasks.store.lake import conform, empty

EVERY = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@EVERY
def test_every_column_and_the_grain_are_described(table: Table) -> None:
    assert table.grain.startswith("one ")
    assert all((f.metadata or {}).get(b"doc", b"").endswith(b".") for f in table.schema)
    assert len(set(table.schema.names)) == len(table.schema.names)


@EVERY
def test_partition_columns_are_columns_that_are_never_null(table: Table) -> None:
    assert all(not table.schema.field(name).nullable for name in table.partition)
    assert table.stored.names == [n for n in table.schema.names if n not in table.partition]


@EVERY
def test_a_table_without_rows_has_all_columns_and_types(table: Table) -> None:
    assert empty(table).schema.equals(pa.schema(list(table.schema)), check_metadata=False)
    assert conform(empty(table), table).schema.equals(table.schema, check_metadata=False)
