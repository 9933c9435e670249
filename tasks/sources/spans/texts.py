"""Parse inputs and outputs of spans: texts, messages and documents, in the various forms that libraries log.

`assembly.py` builds traces from them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from tasks.sources.reading.values import cut_off, number, parsed, scalar

SpanKind: TypeAlias = Literal["llm", "retriever", "reranker", "embedding", "tool", "agent", "chain", "other"]

DEPTH = 12  # limit for nested values
USER, ASSISTANT = {"user", "human"}, {"assistant", "ai", "model"}  # roles of messages

_OBJECT = re.compile(r"\s*<[^<>]*\bobject\b[^<>]*>\s*")  # the `repr` of a generator or another object
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=(.*)\), score=(.*)\)>", re.DOTALL)
_KINDS: dict[str, SpanKind] = {
    **dict.fromkeys(("llm", "chat", "chat_model", "completion", "text_completion"), "llm"),
    **dict.fromkeys(("generation", "generate_content"), "llm"),
    **dict.fromkeys(("retriever", "retrieval"), "retriever"),
    **dict.fromkeys(("reranker", "rerank"), "reranker"),
    **dict.fromkeys(("embedding", "embeddings"), "embedding"),
    **dict.fromkeys(("tool", "execute_tool", "function"), "tool"),
    **dict.fromkeys(("agent", "invoke_agent", "create_agent"), "agent"),
    **dict.fromkeys(("prompt", "parser", "evaluator", "guardrail", "event"), "other"),
}  # fmt: skip
QUESTION = ["question", "query", "input", "user_input", "query_str", "user_query", "q", "message", "text", "prompt",
             "messages", "query_bundle", "inputs", "args", "kwargs", "content"]  # fmt: skip
ANSWER = ["answer", "output", "response", "result", "response_txt", "output_text", "text", "content", "message",
           "messages", "choices", "generations", "outputs", "kwargs", "data"]  # fmt: skip
_TEXT = ("page_content", "content", "text", "document", "body", "chunk", "passage", "snippet")
_SCORE = ("score", "relevance_score", "similarity", "similarity_score", "_score", "rerank_score")
_ID = ("id", "chunk_id", "document_id", "doc_id", "_id", "id_", "node_id", "uuid")
_LISTS = ("documents", "docs", "results", "matches", "nodes", "source_nodes", "chunks", "passages", "context", "output",
          "outputs", "result", "data", "hits")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """A passage as logged by a span. The text is empty if it is missing."""

    text: str = ""
    id: str | None = None
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: str
    text: str


def kind_of(label: object) -> SpanKind:
    """Return the span kind for a store's label in any case; `chain` for an unknown label."""
    return _KINDS.get(str(label).lower(), "chain")


def text_of(value: object, keys: Sequence[str], roles: set[str], depth: int = 0) -> str | None:
    """Return the text in an input or output: the text itself, the last message with a role, or the value of a key.

    Args:
        value: Text, JSON as text, or any JSON value.
        keys: Keys of objects; the first with a text is used. A dotted key is a path into nested objects.
        roles: Roles of the messages to consider.
    """
    if depth > DEPTH:
        return None
    value = parsed(value)
    if isinstance(value, str):
        return None if _OBJECT.fullmatch(value) or cut_off(value) else value
    if isinstance(value, Mapping):
        inner = [v for key in keys if (v := _at(value, key)) is not None]
        inner += value.values() if len(value) == 1 else []
    elif isinstance(value, list):
        messages = messages_of(value)
        if any(m.role for m in messages):
            return next((m.text for m in reversed(messages) if m.role in roles and m.text), None)
        if value and all(isinstance(v, Mapping) and isinstance(v.get("text"), str) for v in value):
            return "".join(v["text"] for v in value)
        inner = value
    else:
        return None
    found = (text_of(v, keys, roles, depth + 1) for v in inner)
    return next((text for text in found if text and text.strip()), None)


def _at(value: Mapping[str, Any], key: str) -> object:
    if key in value:
        return value[key]
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def messages_of(value: object, depth: int = 0) -> tuple[Message, ...]:
    """Return the messages of a prompt or reply, in the forms of OpenAI, the GenAI conventions or LangChain."""
    value = parsed(value)
    if isinstance(value, list) and depth <= DEPTH:
        return tuple(m for item in value for m in messages_of(item, depth + 1))
    if not isinstance(value, Mapping) or depth > DEPTH:
        return ()
    role = _role(value)
    nested = next(
        (k for k in ("messages", "message", "kwargs", "data") if isinstance(value.get(k), Mapping | list)), None
    )
    if nested and "role" not in value:
        inner = messages_of(value[nested], depth + 1)
        return tuple(replace(m, role=m.role or role) for m in inner)
    content = value.get("content", value.get("parts") if role else None)
    return () if content is None else (Message(role, _content(content)),)


def _role(value: Mapping[str, Any]) -> str:
    role = value.get("role", value.get("type"))
    if role == "constructor" and isinstance(value.get("id"), list) and value["id"]:
        role = str(value["id"][-1]).removesuffix("Chunk").removesuffix("Message")
    return role.lower() if isinstance(role, str) and role not in ("text", "Document") else ""


def _content(content: object) -> str:
    """Return the text of a message, which may consist of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = content.get("text", content.get("content"))
        return content if isinstance(content, str) else ""
    return "\n".join(filter(None, map(_content, content))) if isinstance(content, list) else ""


def documents_of(value: object, depth: int = 0) -> tuple[Document, ...]:
    """Return the documents in an output: a list of objects or texts, or an object with such a list."""
    value = parsed(value)
    if depth > DEPTH:
        return ()
    if isinstance(value, Mapping):
        for key in _LISTS:
            if isinstance(value.get(key), list | str | Mapping) and (found := documents_of(value[key], depth + 1)):
                return found
        return ()
    if not isinstance(value, list):
        return ()
    if len(value) == 1 and isinstance(value[0], list):
        return documents_of(value[0], depth + 1)
    return tuple(d for item in value if (d := _document(parsed(item))))


def _document(value: Any) -> Document | None:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        if node := _NODE.fullmatch(value):
            return Document(id=node[1], score=number(node[2]))
        return Document(value)
    if not isinstance(value, Mapping):
        return None
    for key in ("document", "node"):
        if isinstance(inner := value.get(key), Mapping):
            value = {**inner, **{k: v for k, v in value.items() if k != key and v is not None}}
    if isinstance(inner := value.get("kwargs"), Mapping):  # LangChain; here `id` is the class, not the document
        value = inner
    return document(value)


def document(value: Mapping[str, Any]) -> Document | None:
    """Return an object as a document; None if it has neither text nor id."""
    data = parsed(value.get("metadata"))
    data = {str(k): v for k, v in data.items()} if isinstance(data, Mapping) else {}
    text = next((t for where in (value, data) for key in _TEXT if isinstance(t := where.get(key), str)), None)
    own = next((i for key in _ID if (i := scalar(value.get(key)))), None)
    if text is None and own is None:
        return None
    score = next((s for where in (value, data) for key in _SCORE if (s := number(where.get(key))) is not None), None)
    return Document(text or "", own, score, data)


def strings(value: object, depth: int = 0) -> Iterator[str]:
    """Yield every text in a value, nested up to `DEPTH`."""
    value = parsed(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth <= DEPTH:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from strings(item, depth + 1)
