"""Attributes of OpenTelemetry spans, in the dialects of RAG: OpenInference, the GenAI conventions, and OpenLLMetry.

For each field of a span, this module lists the attribute names of all dialects, best first. A trace may mix dialects.
`assembly.py` builds traces from the spans.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasks.sources.reading.values import number, parsed, scalar, whole
from tasks.sources.spans.span import Span
from tasks.sources.spans.texts import Document, Message, SpanKind, document, documents_of, kind_of, messages_of

Event = tuple[str, Mapping[str, Any]]  # name and attributes

_KIND = ("openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type")
_INPUT = ("input.value", "traceloop.entity.input", "gen_ai.input.messages", "gen_ai.tool.call.arguments",
          "gen_ai.retrieval.query.text")  # fmt: skip
_OUTPUT = ("output.value", "traceloop.entity.output", "gen_ai.output.messages", "gen_ai.tool.call.result",
           "gen_ai.retrieval.documents", "rerank.documents")  # fmt: skip
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_TOKENS_IN = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_TOKENS_OUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
_COST = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")
_PROMPT_VERSION = ("llm.prompt_template.version", "gen_ai.prompt.version", "traceloop.prompt.version")
_PROPERTIES = "traceloop.association.properties"
_SESSION = ("session.id", "gen_ai.conversation.id", f"{_PROPERTIES}.session_id", f"{_PROPERTIES}.thread_id")
_APP = ("service.name", "openinference.project.name")
_ENVIRONMENT = ("deployment.environment.name", "deployment.environment")
_NO_TAGS = {"thread_id", "session_id", "conversation_id", "user_id"}  # users and conversations are not labels
_MESSAGE_EVENTS = {"gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion"}


def span_of(
    attributes: Mapping[str, Any], events: Iterable[Event] = (), resource: Mapping[str, Any] | None = None
) -> Span:
    """Return a span with the fields from its attributes, but without ids, name and times.

    Args:
        attributes: Values by full name, such as `retrieval.documents.0.document.id`.
        resource: Attributes of the program that recorded the span.
    """
    resource = resource or {}
    events = list(events)
    for name, more in events:
        attributes = {**more, **attributes} if name in _MESSAGE_EVENTS else attributes
    found = _documents(attributes, events)
    kind = _kind(attributes, found)
    replies = _messages(attributes, "llm.output_messages", "gen_ai.completion") if kind == "llm" else ()
    app = _text(resource, _APP)
    return Span(
        trace_id="",
        span_id="",
        kind=kind,
        input=_first(attributes, _INPUT),
        output=next((m.text for m in reversed(replies) if m.text), None) or _first(attributes, _OUTPUT),
        documents=found,
        messages=_prompt(attributes) if kind == "llm" else (),
        model=_text(attributes, _MODEL),
        tokens_in=whole(_first(attributes, _TOKENS_IN)),
        tokens_out=whole(_first(attributes, _TOKENS_OUT)),
        cost=number(_first(attributes, _COST)),
        prompt_version=_text(attributes, _PROMPT_VERSION),
        session=_text(attributes, _SESSION),
        app=None if app is None or app.startswith("unknown_service") else app,
        environment=_text(resource, _ENVIRONMENT),
        tags=_tags(attributes),
    )


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401 - any attribute's type
    return next((v for name in names if (v := attributes.get(name)) not in (None, "")), None)


def _text(attributes: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((v for name in names if (v := scalar(attributes.get(name)))), None)


def _kind(attributes: Mapping[str, Any], found: Sequence[Document]) -> SpanKind:
    label = _first(attributes, _KIND)
    if label is not None:
        return kind_of(label)
    if found:
        return "reranker" if any("rerank" in name for name in attributes) else "retriever"
    if any(name.startswith(("gen_ai.completion.", "gen_ai.output.", "llm.output_messages.")) for name in attributes):
        return "llm"
    return "other"


def _indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the attributes under `prefix.0.`, `prefix.1.` and so on, one dictionary each, without the prefix."""
    items: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}."):
            index, _, rest = name[len(prefix) + 1 :].partition(".")
            if index.isdecimal() and rest:
                items.setdefault(int(index), {})[rest] = value
    return [items[n] for n in sorted(items)]


def _documents(attributes: Mapping[str, Any], events: Iterable[Event]) -> tuple[Document, ...]:
    for prefix in ("reranker.output_documents", "retrieval.documents"):
        if items := _indexed(attributes, prefix):
            return tuple(d for item in items if (d := document(_unprefixed(item, "document.")))
                         )  # fmt: skip
    for name in ("gen_ai.retrieval.documents", "rerank.documents", "retrieval.documents"):
        if found := documents_of(attributes.get(name)):
            return found
    results = [_unprefixed(more, "db.query.result.") for name, more in events if name == "db.query.result"]
    for result in results:
        # A small distance is a high score. One minus the cosine distance is the cosine similarity.
        distance = number(result.get("distance"))
        if distance is not None:
            result.setdefault("score", round(1 - distance, 12))
    return tuple(d for result in results if (d := document(result)))


def _unprefixed(item: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Remove a prefix from an object's keys, and collect its metadata (maybe `metadata.…` keys) in one dictionary."""
    plain = {name.removeprefix(prefix): value for name, value in item.items()}
    data = parsed(plain.get("metadata"))
    metadata = dict(data) if isinstance(data, Mapping) else {}
    metadata |= {name.removeprefix("metadata."): v for name, v in plain.items() if name.startswith("metadata.")}
    return {**plain, "metadata": metadata}


def _prompt(attributes: Mapping[str, Any]) -> tuple[Message, ...]:
    if listed := _messages(attributes, "llm.input_messages", "gen_ai.prompt"):
        return listed
    if logged := messages_of(attributes.get("gen_ai.input.messages")):
        return logged
    prompts = parsed(attributes.get("llm.prompts"))
    texts = (
        prompts if isinstance(prompts, list) else [p.get("prompt.text") for p in _indexed(attributes, "llm.prompts")]
    )
    return tuple(Message("user", text) for text in texts if isinstance(text, str))


def _messages(attributes: Mapping[str, Any], *prefixes: str) -> tuple[Message, ...]:
    """Return messages from numbered attributes. Their content may be a text or numbered parts."""
    for prefix in prefixes:
        items = [_unprefixed(item, "message.") for item in _indexed(attributes, prefix)]
        messages: list[Message] = []
        for item in items:
            parts = [p.get("message_content.text") for p in _indexed(item, "contents")]
            content = item.get("content") or [{"text": p} for p in parts if isinstance(p, str)]
            messages += messages_of({"role": str(item.get("role", "")), "content": _plain(content)})
        if messages:
            return tuple(messages)
    return ()


def _plain(content: object) -> object:
    """Return the parts of a content if it is a list of parts (maybe as JSON text), otherwise the content unchanged."""
    parts = parsed(content)
    listed = isinstance(parts, list) and parts and all(isinstance(p, Mapping) and "type" in p for p in parts)
    return parts if listed else content


def _tags(attributes: Mapping[str, Any]) -> dict[str, str]:
    data = parsed(attributes.get("metadata"))
    tags = dict(data) if isinstance(data, Mapping) else {}
    for prefix in ("metadata.", f"{_PROPERTIES}."):
        tags |= {name.removeprefix(prefix): v for name, v in attributes.items() if name.startswith(prefix)}
    kept = {str(name): scalar(v) for name, v in tags.items() if name not in _NO_TAGS}
    return {name: v for name, v in sorted(kept.items()) if v is not None and not name.startswith(("ls_", "lc_"))}
