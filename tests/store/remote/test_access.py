"""DuckDB reaches the same places as obstore does, and no others."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.core.paths import ObjectUrl
from tasks.store.remote.access import attach, quote
from tasks.store.remote.objects import objects


def test_duckdb_reads_the_place_and_no_other_one(place: ObjectUrl) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    objects(place).put("t/p.parquet", sink.getvalue().to_pybytes())
    beside = ObjectUrl(f"{place.url}-private", place.cache)  # a prefix that begins like it
    objects(beside).put("t/p.parquet", sink.getvalue().to_pybytes())
    with duckdb.connect() as connection:
        attach(connection, place.url)
        assert connection.execute(f"SELECT sum(a) FROM '{place}/t/*.parquet'").fetchall() == [(3,)]
        with pytest.raises(duckdb.Error):
            connection.execute(f"FROM '{beside}/t/*.parquet'")


def test_a_quote_in_a_key_ends_no_string() -> None:
    with duckdb.connect() as connection:
        assert connection.execute("SELECT '" + quote("a'b") + "'").fetchall() == [("a'b",)]
