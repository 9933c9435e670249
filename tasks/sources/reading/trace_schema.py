"""JSON Schema of the trace format, for programs in other languages: docs/trace.schema.json.

The schema is generated from the structs that the source decodes; `python -m tasks.sources.reading.trace_schema` prints
it. It omits rules that JSON Schema can't express, such as NUL characters and the width of integers.
"""

import json
import sys
from typing import Any

import msgspec

from tasks.core.types import Trace
from tasks.sources import BATCH

_PARTS = {
    "Chunk": {
        "chunk_id": "Id of the passage; citations and gold ids refer to it.",
        "text": "The passage as the generator saw it.",
        "doc_id": "Document that the passage is from.",
        "title": "Title of the document.",
        "rank": "Place in the retriever's order.",
        "retrieval_score": "Score that the retriever gave it.",
    },
    "Citation": {
        "start": "First character of the citing span of the answer, from 0.",
        "end": "One past its last character.",
        "chunk_ids": "Chunks that the span cites.",
    },
    "Feedback": {"score": "Rating, on the application's own scale.", "comment": "What the user wrote."},
}


def trace_json_schema() -> dict[str, Any]:
    """Return the schema with a description of every field."""
    schema = msgspec.json.schema(Trace)
    definitions = schema["$defs"]
    docs = _PARTS | {"Trace": {f.name: (f.metadata or {})[b"doc"].decode() for f in BATCH}}
    for name, definition in definitions.items():
        for field, property_ in definition["properties"].items():
            property_["description"] = docs[name][field]
    definitions["Trace"]["description"] = "One answered question: one line of a Leadline trace file."
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def trace_json_schema_text() -> str:
    """Return the text of docs/trace.schema.json."""
    return json.dumps(trace_json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(trace_json_schema_text())
