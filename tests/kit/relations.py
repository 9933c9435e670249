"""Relations of the cases of `tests/sql`, and parts of a lake: their columns, and rows with what a case leaves out."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from tasks.core.schemas import TABLES, Table
from tasks.scoring import intervals
from tasks.store.lake import Lake, Part, from_rows
from tasks.store.views import current_views

SOME_TIME = datetime(2026, 11, 1, 2, tzinfo=UTC)
VERDICT = pa.schema([
    ("request_key", pa.string()),
    ("label", pa.string()),
    ("failure", pa.string()),
    ("p_supported", pa.float64()),
    ("p_contradicted", pa.float64()),
    ("passages", pa.list_(pa.int32())),
    ("stage", pa.int32()),
])  # fmt: skip
BATCH = pa.schema([("row", pa.int64()), ("trace_id", pa.string()), ("content_hash", pa.string())])
ANNOTATIONS = pa.schema([("trace_id", pa.string()), ("gold_ids", pa.list_(pa.string()))])
REVIEWED = pa.schema([
    *[TABLES["trace_scores"].schema.field(n) for n in ("recipe", "date", "trace_id", "app", "generator", "question_id")],
    ("wrong", pa.bool_()),
    ("random", pa.bool_()),
    *[(f"{n}_{who}", pa.float64()) for n in ("groundedness", "faithfulness") for who in ("people", "judge")],
])  # fmt: skip
GRACE_SUMS = pa.schema([
    *[TABLES["trace_grace"].schema.field(n) for n in ("recipe", "date", "app", "generator")],
    ("question", pa.int64()),
    *[TABLES["nightly_grace_sources"].schema.field(n) for n in ("source", "support")],
    *[(n, pa.int64()) for n in ("true_positives", "false_positives", "false_negatives")],
])  # fmt: skip
SHOWN = pa.schema([
    *[TABLES["trace_scores"].schema.field(n) for n in ("date", "app", "generator", "judge_version")],
    *[(n, pa.string()) for n in ("question", "name")],
    *[(n, pa.int64()) for n in ("n", "n_not_judged", "n_judged", "n_supported", "n_misused", "n_unread")],
    *[(n, pa.int64()) for n in ("traces", "scored", "na", "unjudged", "abstained")],
    ("score_total", pa.float64()),
])  # fmt: skip
REPEATED = pa.schema([
    *[TABLES["nightly_repeats"].schema.field(n) for n in ("recipe", "date", "app", "generator", "judge_version", "number")],
    *[(n, pa.int64()) for n in ("questions", "n", "n_scored", "n_na", "n_unjudged", "n_abstained")],
    ("varied", pa.bool_()),
    *[(n, pa.float64()) for n in ("mean", "variance", "reach")],
])  # fmt: skip
SESSIONS = pa.schema([
    *[TABLES["nightly_sessions"].schema.field(n) for n in ("recipe", "date", "app", "generator", "judge_version", "traces")],
    ("status", pa.string()),
    *[(n, pa.float64()) for n in ("ungrounded", "misused")],
])  # fmt: skip
REVIEWED_CLAIMS = pa.schema([
    *[TABLES["claim_results"].schema.field(n) for n in ("recipe", "date", "trace_id", "claim_id")],
    *[(n, pa.string()) for n in ("outcome", "people", "judge")],
    *[(n, pa.bool_()) for n in ("random", "people_misused", "judge_misused", "to_check", "adjudicated", "disputed")],
    ("n_reviewers", pa.int64()),
    ("votes", pa.list_(pa.struct([("reviewer", pa.string()), ("label", pa.string()), ("adjudicated", pa.bool_())]))),
])  # fmt: skip
REVIEWED_GRADES = pa.schema([
    ("date", pa.date32()),
    *[(n, pa.string()) for n in ("trace_id", "grade", "outcome")],
    ("value", pa.float64()),
    ("n_reviewers", pa.int64()),
    *[(n, pa.bool_()) for n in ("random", "adjudicated")],
    ("votes", pa.list_(pa.struct([("reviewer", pa.string()), ("value", pa.float64()), ("adjudicated", pa.bool_())]))),
])  # fmt: skip
RATINGS = pa.schema([  # labels of claims, or grades of answers, by one rater
    ("date", pa.date32()),
    *[(n, pa.string()) for n in ("claim_id", "trace_id", "item", "app", "question", "grade", "outcome")],
    ("value", pa.float64()),
    ("confidence", pa.float64()),
    ("drawn", pa.bool_()),
])  # fmt: skip
DEFAULTS = {
    "recipe": "r",
    "method": "claims",
    "judge_version": "j",
    "misuse_penalty": 2.0,
    "partial_credit": 0.0,
    "t_context": 0.4,
    "t_groundedness": 50.0,
    "t_answer": 0.4,
    "w_retrieval": 0.4,
    "w_answerability": 0.0,
    "w_faithfulness": 0.5,
    "w_answer": 0.4,
    "salt": "",
    "readers": [],
    "dangling_as_misuse": False,
    "partial_passes": False,
    "sample": 0,
    "grace_source": "chunk",
}
ONE_JUDGE = {"stage": 1}  # whose looks and verdicts they are, where a case does not say it
CLAIM = {"kind": "claim"}  # what was cut, where it does not say it


def schema_of(relation: str) -> pa.Schema:
    extra = {
        "verdict": VERDICT,
        "batch": BATCH,
        "arrived": BATCH,
        "annotations": ANNOTATIONS,
        **dict.fromkeys(("intervals", "shares", "scores"), intervals.OF_SOURCES),
        "grace_sums": GRACE_SUMS,
        "shown": SHOWN,
        "repeated_questions": REPEATED,
        "sessions": SESSIONS,
        "reviewed_traces": REVIEWED,
        "reviewed_claims": REVIEWED_CLAIMS,
        "reviewed_grades": REVIEWED_GRADES,
        "ratings_a": RATINGS,
        "ratings_b": RATINGS,
        "ratings_people": RATINGS,
    }
    return extra[relation] if relation in extra else TABLES[current_views().get(relation, relation)].schema


def relation(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = schema_of(name)
    blank = {f.name: [] for f in schema if pa.types.is_list(f.type)}
    blank |= {n: value for n, value in ONE_JUDGE.items() if n in schema.names}
    blank |= CLAIM if name == "claims" else {}
    names = set(schema.names)
    assert all(set(r) <= names for r in rows), f"{name}: unknown columns in {rows}"
    plain = pa.schema([f.remove_metadata().with_nullable(True) for f in schema])
    maps = [f.name for f in schema if pa.types.is_map(f.type)]
    rows = [{**r, **{n: list(r[n].items()) for n in maps if n in r}} for r in rows]
    return pa.Table.from_pylist([{**blank, **r} for r in rows], schema=plain)


def filled(table: Table, **values: Any) -> dict[str, Any]:
    """A row whose other columns are null, or a plain value where null is not allowed."""
    return {f.name: values.get(f.name, None if f.nullable else _plain(f.type)) for f in table.schema}


def _plain(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return []
    by_kind = {pa.string(): "x", pa.bool_(): False, pa.date32(): SOME_TIME.date()}
    return SOME_TIME if pa.types.is_timestamp(kind) else by_kind.get(kind, 0)


def write(lake: Lake, table: Table, rows: list[dict[str, Any]], *partition: str, name: str = "p") -> Part:
    given = [filled(table, **r, **dict(zip(table.partition, map(_as_date, partition), strict=True))) for r in rows]
    return lake.write(table, name, from_rows(given, table), *partition)


def _as_date(value: str) -> Any:
    return date.fromisoformat(value) if value[:2] == "20" else value
