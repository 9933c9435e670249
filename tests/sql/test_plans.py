"""What scoring costs grows with the claims: DuckDB's plans of all scoring SQL on 50,000 claims."""

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import yaml
from kit.relations import DEFAULTS, schema_of

from tasks.run.identity import SCORING_SQL
from tasks.store.query import bind, connect, sql

CLAIMS, PER_TRACE, PER_CLAIM = 50_000, 4, 4
ROWS = {
    **dict.fromkeys(("traces", "trace_scores", "trace_grace", "reviewed_traces"), CLAIMS // PER_TRACE),
    **dict.fromkeys(("pairs", "verdict", "verdicts", "relevance", "grades"), CLAIMS * PER_CLAIM),
    "intervals": 100,
}
# How many rows have the same value, beginning with the relations of which one row is one of it.
ALIKE = {"trace_id": PER_TRACE, "claim_id": 1, "request_key": 1, "question_id": PER_TRACE, "question": PER_TRACE}
ONE_OF = {"traces": "trace_id", "trace_scores": "trace_id", "trace_grace": "trace_id", "reviewed_traces": "trace_id"}
KEYS = {*ALIKE, "asked", "chunk_id", "review_id", "own_id", "source"}
# Of what is summed up by night, app and generator few rows are left: they may be joined by these.
SUMMED = (
    "nightly_",
    "question_sums",
    "share_sums",
    "shown_slices",
    "waterfall_sums",
    "grade_sums",
    "grace_sums",
    "corrected_sums",
    "repeated_questions",
)
GROUPS = {"app", "number", "pattern", "stage", "name", "language"}
VALUES = {  # what the SQL asks for
    "label": ["supported", "partially_supported", "unsupported", "contradicted", None],
    "status": ["judged", "scored", "unjudged", "abstained", "na"],
    "pair_kind": ["single", "pack", "joint", "joint_cited", "cited_without", "found_true"],
    "kind": ["claim", "refusal", "answer", "context", "answerability"],
}
EQUAL = re.compile(r"^(?P<left>.*?) (?:=|IS NOT DISTINCT FROM) (?P<right>.*)$", re.S)


def scored(name: str) -> list[Any]:
    path = Path(__file__).parent / f"{name}.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else []


QUERIES = [name for name in SCORING_SQL if scored(name)]


def column(relation: str, field: pa.Field, n: int) -> pa.Array:
    """Values of a declared type: keys as they are in a night, the rest few and alike."""
    if field.name in ALIKE and pa.types.is_string(field.type):
        alike = 1 if ONE_OF.get(relation) == field.name else ALIKE[field.name] * max(1, n // CLAIMS)
        return pa.array([f"{field.name}{i // alike}" for i in range(n)])
    kind = np.arange(n) % 3
    if pa.types.is_date(field.type):
        return pa.repeat(date(2026, 11, 1), n)
    if pa.types.is_string(field.type):
        values = VALUES.get(field.name, [f"{field.name}{k}" for k in range(3)])
        return pa.array(values).take(pa.array(np.arange(n) % len(values)))
    if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
        return pa.array(kind).cast(field.type)
    if pa.types.is_boolean(field.type):
        return pa.array(kind > 0)
    return pa.nulls(n, field.type)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A night's relations, bound as the stages bind them."""
    relations = {r for name in QUERIES for case in scored(name) for r in case["given"]} | {"pairs", "claim_results"}
    with connect(":memory:", "2GB", tmp_path_factory.mktemp("scratch")) as connection:
        for relation in sorted(relations):
            n = ROWS.get(relation, CLAIMS)
            rows = pa.table({f.name: column(relation, f, n) for f in schema_of(relation)})
            bind(connection, relation, rows)
        yield connection


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan["children"]:
        yield from nodes(child)


def plan_of(connection: duckdb.DuckDBPyConnection, text: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    used = {k: v for k, v in params.items() if re.search(rf"\${k}\b", text)}
    (row,) = connection.execute(f"EXPLAIN (FORMAT json) {text}", used).fetchall()
    return [n for root in json.loads(row[1]) for n in nodes(root)]


def unkeyed(plan: list[dict[str, Any]], keys: set[str]) -> list[str]:
    """Joins of relations without an equality on one of these columns."""
    found = []
    for node in plan:
        if "JOIN" not in node["name"] and "PRODUCT" not in node["name"]:
            continue
        if any(all("SCAN" not in n["name"] or n["name"] == "DUMMY_SCAN" for n in nodes(s)) for s in node["children"]):
            continue  # a list that the query itself writes down
        conditions = node["extra_info"].get("Conditions", [])
        conditions = [conditions] if isinstance(conditions, str) else conditions
        equal = [m for m in map(EQUAL.match, conditions) if m]
        if not any(keys & set(re.findall(r"\w+", m["left"] + " " + m["right"])) for m in equal):
            found.append(f"{node['name']} {conditions}")
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_joined_by_their_keys(name: str, night: duckdb.DuckDBPyConnection) -> None:
    keys = KEYS | (GROUPS if name.rpartition("/")[2].startswith(SUMMED) else set())
    params = {k: v for case in reversed(scored(name)) for k, v in {**DEFAULTS, **case.get("params", {})}.items()}
    assert unkeyed(plan_of(night, sql(name), params), keys) == []


def test_a_join_by_the_judge_alone_is_found(night: duckdb.DuckDBPyConnection) -> None:
    """As partially supported claims were once looked up: every claim of a stage beside every pair of it."""
    text = (
        "FROM claim_results JOIN pairs ON pairs.stage = claim_results.stage AND pairs.claim_id > claim_results.claim_id"
    )
    assert len(unkeyed(plan_of(night, text, {}), KEYS)) == 1
    assert unkeyed(plan_of(night, "FROM claim_results JOIN pairs USING (stage, claim_id)", {}), KEYS) == []
