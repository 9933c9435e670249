"""MLflow: scores as assessments of a trace.

Creating an assessment is not idempotent, so the trace's assessments are read first. If Leadline has one of this name,
it is updated and duplicates are deleted. Otherwise one is created, without retries. A score that no longer applies is
deleted. MLflow supports assessments of traces and spans, but not of documents.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from tasks.sources.reading import http
from tasks.sources.reading.values import mapping
from tasks.write_back import Done, Item

SOURCE = {"source_type": "LLM_JUDGE", "source_id": "leadline"}
REFUSED = (400, 404, 409)
_TRACES = "/api/3.0/mlflow/traces"


class MlflowWriter:
    """See `Writer`."""

    def __init__(self, client: http.Client) -> None:
        self._client = client

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """See `Writer.write`."""
        for trace_id, own in groupby(sorted(items, key=lambda i: i.key.trace_id), key=lambda i: i.key.trace_id):
            path = f"{_TRACES}/{quote(trace_id, safe='')}"
            reply = self._client.change("GET", path, expected=REFUSED)
            if reply.status in REFUSED:
                problem = "MLflow has no such trace" if reply.status == 404 else f"HTTP {reply.status}"
                yield from (Done(item, item.store_id, problem) for item in own)
                continue
            there = mapping(mapping(reply.data.get("trace")).get("trace_info")).get("assessments")
            yield from (self._one(path, item, _ours(there, item.key.name)) for item in own)

    def _one(self, path: str, item: Item, there: Sequence[str]) -> Done:
        """Create, update or delete the assessment of one score, given the existing assessments of this name."""
        for extra in there if item.score is None else there[1:]:
            reply = self._client.change("DELETE", f"{path}/assessments/{quote(extra, safe='')}", expected=REFUSED)
            if reply.status in REFUSED and reply.status != 404:
                return Done(item, item.store_id, f"HTTP {reply.status}")
        if item.score is None:
            return Done(item)
        body = _assessment(item)
        if there:
            target = f"{path}/assessments/{quote(there[0], safe='')}"
            wanted = {"assessment": body, "update_mask": "feedback,rationale,metadata"}
            reply = self._client.change("PATCH", target, wanted, expected=REFUSED)
        else:
            body |= {"assessment_name": item.key.name, "trace_id": item.key.trace_id, "source": SOURCE}
            created = {"assessment": body}
            reply = self._client.change("POST", f"{path}/assessments", created, expected=REFUSED, repeatable=False)
        if reply.status in REFUSED:
            return Done(item, item.store_id, f"HTTP {reply.status}")
        given = mapping(reply.data.get("assessment")).get("assessment_id")
        return Done(item, given if isinstance(given, str) else next(iter(there), None))


def _ours(assessments: object, name: str) -> list[str]:
    """Ids of Leadline's assessments of this name, oldest first."""
    rows = [mapping(one) for one in (assessments if isinstance(assessments, list) else ())]
    own = [
        r for r in rows if r.get("assessment_name") == name and mapping(r.get("source")).get("source_id") == "leadline"
    ]
    valid = sorted((r for r in own if r.get("valid", True)), key=lambda r: str(r.get("create_time")))
    return [i for r in valid if isinstance(i := r.get("assessment_id"), str)]


def _assessment(item: Item) -> dict[str, Any]:
    return {
        "feedback": {"value": item.score},
        "rationale": item.explanation,
        "metadata": {**item.about, "label": item.label},
    }
