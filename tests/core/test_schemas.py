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
def test_what_to_do_about_a_damaged_part_depends_on_whether_it_can_be_made_again(table: Table) -> None:
    remedy = table.remedy
    assert table.lost in remedy
    assert table.remade in remedy
    assert table.lost or table.remade  # something is lost, or all is made again
    assert ("Remove the file and run" in remedy) == bool(table.remade)
    assert ("restore it from a backup" in remedy) == bool(table.lost)
    assert (table.lost + table.remade).isprintable()


@EVERY
def test_what_a_table_is_made_of_begins_with_what_nothing_makes(table: Table) -> None:
    assert table.remade or not (table.made_of or table.paid)
    assert set(table.made_of) <= set(TABLES) - {table.name}
    assert ("paid for again" in table.remedy) == table.paid


def test_what_a_model_makes() -> None:
    assert {t.name for t in TABLES.values() if t.paid} == {
        "claims", "verdicts", "relevance", "grades", "ask_replies", "judge_noise", "metaeval",
    }  # fmt: skip


def test_what_nothing_makes_again() -> None:
    """Logs rotate away, and people, decisions, runs and sent messages are not computed."""
    assert {t.name for t in TABLES.values() if not t.remade} == {
        "traces", "feedback", "samples", "sources", "reviews", "redactions", "promotions", "runs", "quarantine", "alerts",
    }  # fmt: skip


@EVERY
def test_partition_columns_are_columns_that_are_never_null(table: Table) -> None:
    assert all(not table.schema.field(name).nullable for name in table.partition)
    assert table.stored.names == [n for n in table.schema.names if n not in table.partition]


@EVERY
def test_a_table_without_rows_has_all_columns_and_types(table: Table) -> None:
    assert empty(table).schema.equals(pa.schema(list(table.schema)), check_metadata=False)
    assert conform(empty(table), table).schema.equals(table.schema, check_metadata=False)
