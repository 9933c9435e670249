"""The views `current_…` show the rows that count, of every table and view with results."""

from datetime import date
from typing import Any

import pytest
from kit.report_rows import DuckReader, Rows

from tasks.core.schemas import TABLES
from tasks.store.views import current_views, views

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)


@pytest.fixture(scope="module")
def reader() -> DuckReader:
    """Two nights of an app: recipe `old` counts on the first and `new` on the second; both have results for both."""
    rows = Rows()
    rows.add("runs", flow="nightly", status="completed", recipe="new")
    for recipe in ("old", "new"):
        rows.add("recipes", recipe=recipe, name="claims")
    for day, recipe in ((FIRST, "old"), (SECOND, "new")):
        rows.add("current_recipes", date=day, app="a", recipe_name="claims", recipe=recipe)
    tables = [name for name in current_views().values() if name in TABLES]
    for day in (FIRST, SECOND):
        for recipe in ("old", "new"):
            for name in tables:
                mine = {"recipe": recipe, "date": day, "app": "a", "trace_id": f"t{day}", "claim_id": f"c{day}"}
                rows.add(name, **{k: v for k, v in mine.items() if k in TABLES[name].schema.names})
            rows.add("trace_scores", recipe=recipe, date=day, app="a", trace_id=f"u{day}")
        for trace in (f"t{day}", f"u{day}"):
            rows.add("traces", date=day, trace_id=trace, app="a")
        rows.add("claims", date=day, trace_id=f"t{day}", claim_id=f"c{day}")
    for row in rows.tables["trace_scores"]:
        row["question_id"] = "q"  # two traces a night, so that it is a repeated question
        row["groundedness_score"] = 1.0  # a number of `trace_numbers`
    found = rows.reader()
    for name, body in views().items():
        found.connection.execute(f"CREATE OR REPLACE VIEW {name} AS {body}")
    return found


def seen(reader: DuckReader, relation: str) -> set[tuple[Any, ...]]:
    return {(r["date"], r["recipe"]) for r in reader.rows(f"SELECT DISTINCT date, recipe FROM {relation}", {})}


@pytest.mark.parametrize("view", current_views())
def test_each_night_shows_the_recipe_that_counts(reader: DuckReader, view: str) -> None:
    of = current_views()[view]
    assert seen(reader, of) == {(FIRST, "old"), (FIRST, "new"), (SECOND, "old"), (SECOND, "new")}
    assert seen(reader, view) == {(FIRST, "old"), (SECOND, "new")}
    columns = [reader.connection.execute(f"DESCRIBE {name}").fetchall() for name in (view, of)]
    assert [c[:2] for c in columns[0]] == [c[:2] for c in columns[1]]


def test_every_nightly_table_has_one_by_its_name() -> None:
    """No two tables share one, and none takes the name of a table."""
    assert {f"current_{n.removeprefix('nightly_')}" for n in TABLES if n.startswith("nightly_")} <= set(current_views())
    assert len(set(current_views().values())) == len(current_views())
    assert not set(current_views()) & set(TABLES)
