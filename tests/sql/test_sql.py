"""Every scoring query on rows written by hand: rows in, rows out, as YAML beside this file.

A case names the relations' rows (columns that are left out are null, lists empty, the judge the first), the parameters,
and the expected rows; only the columns that the expectation names are compared. `why` says where the expectation comes from.
Lists that `together` names are of the same things, which stand in any order. Rows that a query gives in any order are
sorted by the columns that `unordered` names.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.relations import DEFAULTS, relation

from tasks.core.paths import sql_dir
from tasks.store.query import Queries, sql

HERE = Path(__file__).parent


def cases() -> list[Any]:
    found = []
    for path in sorted(HERE.rglob("*.yaml")):
        query = path.relative_to(HERE).with_suffix("").as_posix()
        found += [pytest.param(query, c, id=f"{query}: {c['case']}") for c in yaml.safe_load(path.read_text())]
    return found


def views_read_by(query: str) -> set[str]:
    """The views among a query's inputs: a case gives their rows, or those of the tables that they read."""
    (inputs,) = re.findall(r"^-- inputs: (.*)$", sql(query), re.MULTILINE | re.IGNORECASE)[:1] or [""]
    return {name for name in re.findall(r"\w+", inputs) if (sql_dir() / "views" / f"{name}.sql").exists()}


@pytest.mark.parametrize(("query", "case"), cases())
def test_query(query: str, case: dict[str, Any], tmp_path: Path) -> None:
    with Queries("1GB", tmp_path) as queries:
        relations = {name: relation(name, rows) for name, rows in case["given"].items()}
        for view in views_read_by(query) - relations.keys():
            relations[view] = queries.run(f"views/{view}", relations)
        found = queries.run(query, relations, {**DEFAULTS, **case.get("params", {})}).to_pylist()
    expected = case["expect"]
    if by := case.get("unordered"):
        found.sort(key=lambda r: [r[column] for column in by])
    assert len(found) == len(expected), found
    names = case.get("together", [])
    for row in (*found, *expected):
        each = sorted(zip(*(row[name] for name in names), strict=True))
        row.update(zip(names, map(list, zip(*each, strict=True)), strict=bool(each)))
    for row, want in zip(found, expected, strict=True):
        for column, value in want.items():
            got = row[column]
            if isinstance(value, float) and got is not None:
                assert got == pytest.approx(value, abs=case.get("within", 1e-9)), (column, row)
            else:
                assert got == value, (column, row)
