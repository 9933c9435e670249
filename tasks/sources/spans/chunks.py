"""The chunks that the generator saw: documents of the searches before its call, in the order of its prompt."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tasks.sources.reading.values import scalar
from tasks.sources.spans.prompt import flat, in_prompt
from tasks.sources.spans.span import Found, RefusedError, Span, name_of, start_of
from tasks.sources.spans.texts import Document, Message, messages_of, strings
from tasks.sources.spans.tree import Spans, question_in

_PARENTS = ("doc_id", "document_id", "source", "file_name", "file_path", "url")


def chunks_of(spans: Spans, asked: Span, model: Span | None, found: Found) -> tuple[list[Document], list[Span]]:
    """Return the documents that the generator saw, in order, and the spans that returned them.

    Raises:
        RefusedError: None of the documents has a text, or the clocks of the spans disagree.
    """
    settings = spans.settings
    searches = [s for s in spans.all if s.kind in ("retriever", "reranker") and spans.documents[s.span_id]]
    prompt = [flat(m.text) for m in _messages(model)] if model and settings.prompt == "follow" else []
    before = _before(spans, searches, model, prompt)
    pool = [d for s in before for d in spans.documents[s.span_id]]
    rerankers = sorted((s for s in before if s.kind == "reranker"), key=lambda s: (s.end or start_of(s), s.span_id))
    if rerankers:
        used = rerankers[-1:]
    else:
        with_documents = {s.span_id for s in before}
        used = [s for s in before if not any(a.span_id in with_documents for a in spans.ancestors(s))]
    if not before and settings.tool:
        used = [s for s in spans.all if s.name == settings.tool and spans.documents[s.span_id]]
        pool = [d for s in used for d in spans.documents[s.span_id]]
    lists = [[_with_text(d, pool) for d in spans.documents[s.span_id]] for s in used]
    chosen = _union(lists)
    if not chosen:
        found.missed["chunks"] = _why_none(spans, searches)
        return [], []
    if not any(d.text.strip() for d in chosen):
        raise RefusedError(
            "no_chunk_text", f"none of {len(chosen)} documents has a text: log it, or use a jsonl source"
        )
    found.take("chunks", ", ".join(dict.fromkeys(map(name_of, used))), *used)
    copies = Counter(flat(d.text) for documents in lists for d in documents)
    queries = [text for s in (asked, *searches) if (text := question_in(s, settings)) and text.strip()]
    seen = in_prompt(chosen, pool, prompt, copies, list(map(flat, queries)))
    if seen is None:
        if settings.prompt == "follow":
            found.missed["prompt"] = "not_in_prompt" if any(prompt) else "no_prompt"
        return chosen, used
    if model:
        found.take("prompt", f"prompt of {name_of(model)}", model)
    return seen, used


def _why_none(spans: Spans, searches: Sequence[Span]) -> str:
    if searches:
        return "searched_after_answer"
    searched = any(s.kind in ("retriever", "reranker") for s in spans.all)
    return "nothing_found" if searched else "no_retriever"


def _before(spans: Spans, searches: Sequence[Span], model: Span | None, prompt: Sequence[str]) -> list[Span]:
    """Return the searches whose documents the answering model call may have seen."""
    if model is None or model.start is None:
        return list(searches)
    before = [s for s in searches if (s.end or start_of(s)) <= model.start]
    if before or not searches:
        return before
    during = [s for s in searches if start_of(s) < (model.end or model.start)]
    if during:
        return during
    texts = [d for s in searches for d in spans.documents[s.span_id]]
    if in_prompt(texts, texts, prompt, {}, []):
        return list(searches)
    for span in searches:
        above = spans.parent(span)
        if above and above.end and (start_of(span) > above.end or (above.start and start_of(span) < above.start)):
            raise RefusedError("clocks_disagree", f"{name_of(span)} runs outside the time of its parent")
    return []


def _union(lists: Sequence[Sequence[Document]]) -> list[Document]:
    """Merge documents of searches. Drops documents that an earlier search found, but keeps copies within a search."""
    union: list[Document] = []
    for documents in lists:
        union += [d for d in documents if not any(_same(d, other) for other in union)]
    return union


def _same(one: Document, other: Document) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id and (one.text == other.text or not (one.text and other.text))
    return bool(one.text) and one.text == other.text


def _with_text(document: Document, pool: Sequence[Document]) -> Document:
    """Add text and metadata from the retriever's document of the same id: a reranker may log only ids."""
    if document.text or document.id is None:
        return document
    source = next((d for d in pool if d.id == document.id and d.text), None)
    return document if source is None else replace(document, text=source.text, metadata=source.metadata)


def named_chunks(documents: Sequence[Document], id_keys: Sequence[str], found: Found) -> list[dict[str, object]]:
    """Return chunks with unique ids: the document's id, an id from its metadata, or its position.

    Args:
        id_keys: Metadata keys for the id, tried in order.
    """
    chunks: list[dict[str, object]] = []
    taken: set[str] = set()
    for n, document in enumerate(documents, 1):
        data = document.metadata
        key = next((key for key in id_keys if scalar(data.get(key))), None)
        if document.id or key:
            found.where.setdefault("ids", "document" if document.id else f"metadata.{key}")
        else:
            found.missed["ids"] = "by_position"
        own = document.id or (key and scalar(data.get(key))) or str(n)
        name, copy = own, 1
        while name in taken:
            copy += 1
            name = f"{own}~{copy}"
        taken.add(name)
        parent = next((i for key in _PARENTS if (i := scalar(data.get(key)))), None)
        chunks.append({"chunk_id": name, "text": document.text, "doc_id": parent, "title": scalar(data.get("title")),
                       "rank": n, "retrieval_score": document.score})  # fmt: skip
    return chunks


def _messages(span: Span) -> tuple[Message, ...]:
    return span.messages or messages_of(span.input) or tuple(Message("", text) for text in strings(span.input))
