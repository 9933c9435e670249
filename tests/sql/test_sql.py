"""Every scoring query on rows written by hand: rows in, rows out, as YAML beside this file.

A case names the relations' rows (columns that are left out are null, lists empty, the judge the first), the parameters,
and the expected rows; only the columns that the expectation names are compared. `why` says where the expectation comes from.
Lists that `together` names are of the same things, which stand in any order. Rows that a query gives in any order are
sorted by the columns that `unordered` names.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.relations import DEFAULTS, relation

from tasks.store.query import Queries

HERE = Path(__file__).parent


def cases() -> list[Any]:
    found = []
    for path in sorted(HERE.rglob("*.yaml")):
        query = path.relative_to(HERE).with_suffix("").as_posix()
        found += [pytest.param(query, c, id=f"{query}: {c['case']}") for c in yaml.safe_load(path.read_text())]
    return found


@pytest.mark.parametrize(("query", "case"), cases())
def test_query(query: str, case: dict[str, Any], tmp_path: Path) -> None:
    with Queries("1GB", tmp_path) as queries:
        relations = {name: relation(name, rows) for name, rows in case["given"].items()}
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
