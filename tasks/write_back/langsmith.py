"""LangSmith: scores as feedback on the root run, which has the trace's id.

The id of a feedback is derived from trace and name. Feedback that already exists (409) is updated. A score that no
longer applies is deleted. Feedback extends the retention of a trace in LangSmith, which costs money, unless
`extend_trace_retention` is false. LangSmith supports feedback on runs, but not on documents.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.sources.reading import http
from tasks.write_back import Done, Item

IDS = uuid.UUID("d1f5be34-6a5e-5c8e-8a2f-1a2c1c9a3b70")
REFUSED = (400, 404, 409, 422)
_FEEDBACK = "/api/v1/feedback"


class LangsmithWriter:
    """See `Writer`.

    Args:
        extend: Whether feedback extends the retention of its trace.
    """

    def __init__(self, client: http.Client, *, extend: bool) -> None:
        self._client = client
        self._extend = extend

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """See `Writer.write`."""
        for item in items:
            name = feedback_id(item)
            status = self._deleted(name) if item.score is None else self._written(item, name)
            problem = "LangSmith has no such run" if status == 404 else f"HTTP {status}"
            yield Done(item, name, problem if status in REFUSED else None)

    def _deleted(self, name: str) -> int:
        status = self._client.change("DELETE", f"{_FEEDBACK}/{name}", expected=REFUSED).status
        return 204 if status == 404 else status

    def _written(self, item: Item, name: str) -> int:
        """Update existing feedback, or else create it; returns the HTTP status of the last request."""
        change = {"score": item.score, "value": item.label, "comment": item.explanation}
        if item.store_id:
            status = self._client.change("PATCH", f"{_FEEDBACK}/{name}", change, expected=REFUSED).status
            if status != 404:
                return status
        body: dict[str, Any] = {
            "id": name,
            "run_id": item.key.trace_id,
            "trace_id": item.key.trace_id,
            "key": item.key.name,
            **change,
            "feedback_source": {"type": "model", "metadata": item.about},
            "extend_trace_retention": self._extend,
        }
        status = self._client.change("POST", _FEEDBACK, body, expected=REFUSED).status
        if status == 409:
            return self._client.change("PATCH", f"{_FEEDBACK}/{name}", change, expected=REFUSED).status
        return status


def feedback_id(item: Item) -> str:
    """Deterministic id of the feedback in LangSmith."""
    return str(uuid.uuid5(IDS, f"{item.key.trace_id}\n{item.key.name}"))
