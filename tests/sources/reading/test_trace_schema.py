"""The published JSON Schema says what the source does."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kit.root import ROOT

from tasks.core.schemas import CHUNK, CITATION, NEVER_READ, RATING
from tasks.sources import BATCH, SourceFile
from tasks.sources.jsonl import Config, JsonlSource
from tasks.sources.reading.trace_schema import trace_json_schema, trace_json_schema_text

DOCS = ROOT / "docs"
SCHEMA = trace_json_schema()
MINIMAL: dict[str, Any] = {
    "trace_id": "t",
    "timestamp": "2026-11-01T10:00:00Z",
    "app": "a",
    "generator": "g",
    "question": "",
    "answer": "",
}


def accepted(data: bytes, tmp: Path) -> int:
    (tmp / "a.jsonl").write_bytes(data)
    source = JsonlSource(Config(kind="jsonl", paths=["a.jsonl"], unknown_fields="quarantine"), tmp)
    return sum(batch.table.num_rows for batch in source.read(SourceFile("a.jsonl", "")))


def test_published_file_is_up_to_date() -> None:
    assert (DOCS / "trace.schema.json").read_text(encoding="utf-8") == trace_json_schema_text()


def test_is_a_schema_in_which_every_field_is_described() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for definition in SCHEMA["$defs"].values():
        assert all(p["description"] for p in definition["properties"].values())


def test_fields_are_the_columns() -> None:
    """What is read is what is stored: no field of the format gets lost, no column stays empty."""
    fields = {name: set(definition["properties"]) for name, definition in SCHEMA["$defs"].items()}
    assert fields == {
        "Trace": {f.name for f in BATCH} - {"line", *NEVER_READ},
        "Chunk": {f.name for f in CHUNK},
        "Citation": {f.name for f in CITATION},
        "Feedback": {f.name for f in RATING},
    }


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"chunks": [{"chunk_id": "c", "text": ""}]}, True),
        ({"chunks": [{"chunk_id": "c"}]}, False),
        ({"trace_id": ""}, False),
        ({"question": None}, False),
        ({"environment": None}, True),
        ({"tokens_in": -1}, False),
        ({"tags": {"a": 1}}, False),
        ({"citations": [{"start": 0, "end": 1, "chunk_ids": ["c"]}]}, True),
        ({"citations": [{"start": 0, "end": 1}]}, False),
        ({"feedback": {"score": 0.5}}, True),
    ],
)
def test_schema_and_source_agree(changes: dict[str, Any], good: bool, tmp_path: Path) -> None:
    trace = {**MINIMAL, **changes}
    assert Draft202012Validator(SCHEMA).is_valid(trace) is good
    assert accepted(json.dumps(trace).encode(), tmp_path) == good


def test_example_lines_of_the_docs_are_good(tmp_path: Path) -> None:
    text = (DOCS / "trace-format.md").read_text(encoding="utf-8")
    blocks = [b.split("```")[0] for b in text.split("```json\n")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        trace = json.loads(block)
        assert not list(Draft202012Validator(SCHEMA).iter_errors(trace))
        assert accepted(json.dumps(trace).encode(), tmp_path) == 1
        chunks = {c["chunk_id"] for c in trace.get("chunks", [])}
        for citation in trace.get("citations", []):
            assert trace["answer"][citation["start"] : citation["end"]].strip()
            assert set(citation["chunk_ids"]) <= chunks
