"""Phoenix: scores as trace annotations, and verdicts on chunks as annotations of retrieved documents.

Both are upserts. The key of a trace annotation is name and `identifier`; the key of a document annotation is name and
position, since Phoenix accepts no identifier there. With `sync=true` the server reports unknown ids; without it, the
server accepts everything and drops unknown ids silently. The span and position of a chunk are looked up in Phoenix by
trace id, because the lake does not store them. A score that no longer applies is replaced by a label without a score.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tasks.sources import Reject
from tasks.sources.phoenix import PhoenixStore
from tasks.sources.reading import http
from tasks.sources.spans import Span, SpanSettings, assemble
from tasks.sources.spans.pull import MalformedError
from tasks.write_back import Done, Item, batched

IDENTIFIER = "leadline"
BATCH = 100  # annotations per request
TRACES = 25  # traces per request for spans, since their ids are part of the URL
REFUSED = (400, 404, 409, 422)

Place: TypeAlias = tuple[str, int]  # span id, and position of the document from 0


class PhoenixWriter:
    """See `Writer`."""

    def __init__(self, store: PhoenixStore, client: http.Client, spans: SpanSettings) -> None:
        self._store = store
        self._client = client
        self._spans = spans

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """See `Writer.write`."""
        traces = [item for item in items if item.key.chunk_id is None]
        for batch in batched(traces, BATCH):
            yield from self._send("/v1/trace_annotations", [(item, _of_trace(item)) for item in batch])
        chunks: dict[str, list[Item]] = defaultdict(list)
        for item in items:
            if item.key.chunk_id is not None:
                chunks[item.key.trace_id].append(item)
        for ids in batched(chunks, TRACES):
            places = self._places(ids)
            bodies: list[tuple[Item, dict[str, Any]]] = []
            for item in (item for trace_id in ids for item in chunks[trace_id]):
                place = places.get(item.key.trace_id, {}).get(item.key.chunk_id or "")
                if place:
                    bodies.append((item, _of_document(item, place)))
                else:
                    yield Done(item, left_out=True)  # logged as plain output, not as a document
            for group in batched(bodies, BATCH):
                yield from self._send("/v1/document_annotations", group)

    def _send(self, path: str, bodies: Sequence[tuple[Item, Mapping[str, Any]]]) -> Iterator[Done]:
        """Send annotations. If the server refuses them, which one unknown id can cause, send them one by one."""
        data = {"data": [body for _, body in bodies]}
        reply = self._client.change("POST", path, data, params={"sync": "true"}, expected=REFUSED)
        if reply.status in REFUSED and len(bodies) > 1:
            for one in bodies:
                yield from self._send(path, [one])
            return
        problem = None
        if reply.status in REFUSED:
            what = "trace" if path.endswith("trace_annotations") else "span"
            problem = f"Phoenix has no such {what}" if reply.status == 404 else f"HTTP {reply.status}"
        answered = reply.data.get("data")
        ids = answered if isinstance(answered, list) and len(answered) == len(bodies) else [{}] * len(bodies)
        for (item, _), given in zip(bodies, ids, strict=True):
            store_id = given.get("id") if isinstance(given, dict) else None
            yield Done(item, store_id if isinstance(store_id, str) else item.store_id, problem)

    def _places(self, ids: Sequence[str]) -> dict[str, dict[str, Place]]:
        """Spans and positions of chunks, by trace id and chunk id."""
        spans: dict[str, list[Span]] = defaultdict(list)
        for record in self._store.of_traces(self._client, ids):
            if not isinstance(record, Reject):
                try:
                    for span in self._store.spans(record):
                        spans[span.trace_id].append(span)
                except MalformedError:
                    continue
        return {trace_id: places(found, self._spans) for trace_id, found in spans.items()}


def places(spans: Sequence[Span], settings: SpanSettings) -> dict[str, Place]:
    """Find the chunks of a trace among the documents of its retrieval spans. Chunks that are not found are left out."""
    assembled = assemble(spans, settings)
    used = assembled.found.spans.get("chunks", ())
    searches = sorted(
        (s for s in spans if s.documents), key=lambda s: (s.span_id not in used, s.start is None, s.start)
    )
    free = [((s.span_id, n), document) for s in searches for n, document in enumerate(s.documents)]
    found: dict[str, Place] = {}
    for chunk in assembled.trace.chunks if assembled.trace else ():
        same = [at for at, (_, d) in enumerate(free) if (d.text == chunk.text if d.text else d.id == chunk.chunk_id)]
        if same:
            found[chunk.chunk_id], _ = free.pop(same[0])
    return found


def _of_trace(item: Item) -> dict[str, Any]:
    return {"trace_id": item.key.trace_id, "identifier": IDENTIFIER, **_annotation(item)}


def _of_document(item: Item, place: Place) -> dict[str, Any]:
    span_id, position = place
    about = {"chunk_id": item.key.chunk_id}
    body = _annotation(item)
    return {"span_id": span_id, "document_position": position, **body, "metadata": {**body["metadata"], **about}}


def _annotation(item: Item) -> dict[str, Any]:
    result = {"score": item.score, "label": item.label, "explanation": item.explanation}
    return {"name": item.key.name, "annotator_kind": "LLM", "result": result, "metadata": item.about}
