"""Traces of TruLens 2, from the spans in its SQLite or PostgreSQL database.

Each record becomes a trace. Spans of evaluations are skipped. The package `spans` interprets the spans.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.sources import Batch, Reject, Source, SourceFile
from tasks.sources.reading.values import mapping, moment, number, scalar, whole
from tasks.sources.reading.windows import Window, window_of, windows
from tasks.sources.spans import Assembled, Span, SpanSettings, batches, first, traces
from tasks.sources.spans.attributes import span_of
from tasks.sources.spans.pull import MalformedError, malformed
from tasks.sources.spans.texts import Message, SpanKind, documents_of, strings
from tasks.sources.tabular.database import Database, InDatabase

_OWN = "ai.observability."
_KINDS: dict[str, SpanKind] = {
    "record_root": "chain",
    "retrieval": "retriever",
    "reranking": "reranker",
    "generation": "llm",
    "embedding": "embedding",
    "tool": "tool",
    "tool_invocation": "tool",
    "mcp": "tool",
    "agent": "agent",
    "agent_invocation": "agent",
}
_QUERY = """
SELECT record, record_attributes, resource_attributes, start_timestamp, timestamp, trace
FROM {prefix}events
WHERE start_timestamp >= :start AND start_timestamp < :end
ORDER BY start_timestamp
"""
_INPUT = ("record_root.input", "retrieval.query_text", "reranking.query_text")
_OUTPUT = ("record_root.output", "call.return")


class Config(InDatabase):
    """Settings of a `trulens` source; see `InDatabase` for the common ones.

    Attributes:
        prefix: Prefix of the table names, as in `database_prefix` of TruLens.
        spans: How to build traces from spans.
    """

    kind: Literal["trulens"]
    prefix: Annotated[str, Field(pattern=r"^([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*$")] = "trulens_"
    spans: SpanSettings = SpanSettings()


def build(config: Config, base: Path) -> Source:  # noqa: ARG001 - a database has no relative path
    """Create the source from its settings.

    Raises:
        UsageError: `dsn_env` is not a variable name.
    """
    return TrulensSource(config)


class TrulensSource:
    """Reads the records of a TruLens database.

    Args:
        now: Returns the current time in UTC.
    """

    write_back = None  # TruLens stores its own scores as columns

    def __init__(self, config: Config, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._config = config
        self._database = Database("trulens", config.dsn_env)
        self._now = now
        self._query = _QUERY.format(prefix=config.prefix)

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`. The files are time windows."""
        place = f"{self._database.name} {self._config.prefix}events"
        return windows(place, self._config, start, end, self._now())

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """See `tasks.sources.Source.read`. `line` is the trace's number in its window."""
        return batches(traces(self.spans(file), self.settings, window_of(file).begins))

    @property
    def settings(self) -> SpanSettings:
        """See `SpanSource.settings`."""
        return self._config.spans

    def spans(self, file: SourceFile) -> Iterator[Span | Reject]:
        """See `SpanSource.spans`."""
        wanted: Window = window_of(file).widened(self._config.grace_minutes)
        for row in self._database.rows(self._query, wanted):
            try:
                span = span_of_event(row)
            except MalformedError as error:
                yield malformed({k: str(v) for k, v in row.items()}, str(error))
                continue
            if span:
                yield span

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """See `SpanSource.traces`."""
        window = window_of(file)
        return traces(first(self.spans(file), most, window.holds), self.settings, window.begins)


def span_of_event(row: Mapping[str, Any]) -> Span | None:
    """Return the span of an event; None for an evaluation.

    Raises:
        MalformedError: The event has no record id or no span id.
    """
    attributes, ids, record = (mapping(row[name]) for name in ("record_attributes", "trace", "record"))
    own = {k.removeprefix(_OWN): v for k, v in attributes.items() if k.startswith(_OWN)}
    trace_id, span_id = scalar(own.get("record_id")) or scalar(ids.get("trace_id")), scalar(ids.get("span_id"))
    if trace_id is None or span_id is None:
        raise MalformedError("an event without a record id or span id")
    label = str(own.get("span_type") or "")
    if label.startswith("eval"):
        return None
    root = label == "record_root"
    found = span_of(attributes, (), mapping(row["resource_attributes"]))
    arguments = {k.removeprefix("call.kwargs."): v for k, v in own.items() if k.startswith("call.kwargs.")}
    # The arguments of a model call are its prompt. A passage found by two searches is kept at its first place.
    given = "\n".join(dict.fromkeys(strings(arguments))) if _KINDS.get(label) == "llm" else ""
    output = next((v for name in _OUTPUT if (v := own.get(name)) not in (None, "")), found.output)
    start, end = moment(row["start_timestamp"]), moment(row["timestamp"])
    return replace(
        found,
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None if root else scalar(ids.get("parent_id")) or scalar(record.get("parent_span_id")),
        name=str(record.get("name") or ""),
        kind=_KINDS.get(label, found.kind if label in ("", "unknown") else "chain"),
        start=start,
        end=end,
        error="ERROR" in str(record.get("status")),
        input=next((v for name in _INPUT if (v := own.get(name)) not in (None, "")), arguments or found.input),
        output=output,
        documents=documents_of(own.get("retrieval.retrieved_contexts")) or found.documents,
        messages=found.messages or ((Message("", given),) if given else ()),
        model=scalar(own.get("cost.model")) or found.model,
        tokens_in=whole(own.get("cost.num_prompt_tokens")) or found.tokens_in,
        tokens_out=whole(own.get("cost.num_completion_tokens")) or found.tokens_out,
        cost=number(own.get("cost.cost")) if own.get("cost.cost_currency", "USD") == "USD" else None,
        session=scalar(own.get("conversation_id")) or found.session,
        app=scalar(own.get("app_name")) or found.app,
    )
