"""Langfuse: scores of traces. A score's id is derived from trace and name.

Langfuse replaces a score if it gets the same id and timestamp again, so the trace's timestamp is sent. If Langfuse
refuses part of a batch, it replies with 207 and does not say which part; the items are then sent one by one. A score
that no longer applies is deleted. Langfuse supports scores of traces and observations, but not of documents.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.sources.reading import http
from tasks.write_back import Done, Item, batched

BATCH = 50
IDS = uuid.UUID("6f5d2d0e-3b0b-5a55-9d63-0a5a4f2f7c11")
REFUSED = (400, 404, 409, 413, 422)
_SCORES = "/api/public/scores"


class LangfuseWriter:
    """See `Writer`."""

    def __init__(self, client: http.Client) -> None:
        self._client = client

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """See `Writer.write`."""
        for item in items:
            if item.score is None:
                yield self._deleted(item)
        for batch in batched([item for item in items if item.score is not None], BATCH):
            yield from self._send(batch)

    def _deleted(self, item: Item) -> Done:
        name = score_id(item)
        reply = self._client.change("DELETE", f"{_SCORES}/{name}", expected=REFUSED)
        refused = reply.status in REFUSED and reply.status != 404
        return Done(item, name, f"HTTP {reply.status}" if refused else None)

    def _send(self, items: Sequence[Item]) -> Iterator[Done]:
        reply = self._client.change("POST", _SCORES, [_score(item) for item in items], expected=REFUSED)
        rejected = reply.status in REFUSED or bool(reply.data.get("rejected")) or bool(reply.data.get("errors"))
        if rejected and len(items) > 1:
            for item in items:  # items that were already accepted are replaced by the same values
                yield from self._send([item])
            return
        problem = f"Langfuse refuses it (HTTP {reply.status})" if rejected else None
        yield from (Done(item, score_id(item), problem) for item in items)


def score_id(item: Item) -> str:
    """Deterministic id of the score in Langfuse."""
    return str(uuid.uuid5(IDS, f"{item.key.trace_id}\n{item.key.name}"))


def _score(item: Item) -> dict[str, Any]:
    return {
        "id": score_id(item),
        "traceId": item.key.trace_id,
        "name": item.key.name,
        "value": item.score,
        "dataType": "NUMERIC",
        "comment": f"{item.label}: {item.explanation}",
        "metadata": {**item.about, "label": item.label},
        "timestamp": item.timestamp.isoformat(timespec="milliseconds"),
        **({"environment": item.environment} if item.environment else {}),
    }
