"""Traces in files of the OpenTelemetry Collector: its file exporter's JSON lines or length-prefixed protobuf.

A line or message contains spans of several traces, and the spans of a trace may be spread over lines and files. So all
files of a path (or of a day, for a path with `{date}`) are read together. For a path with `{date}`, the files of the
day before and the day after are also read, for more spans of the same traces. A message may be compressed with
Zstandard; its length prefix is not.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import zstandard
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import Field

from tasks.core import keys
from tasks.core.config import Settings
from tasks.sources import Batch, Reason, Reject, Source, SourceFile
from tasks.sources.reading import files, values
from tasks.sources.spans import Assembled, Span, SpanSettings, batches, first, traces
from tasks.sources.spans.attributes import span_of

BLOCK_BYTES = 4 << 20
MAX_MESSAGE_BYTES = 256 << 20  # limit for a line or message, before and after decompression

_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_HEX = re.compile(r"[0-9a-f]+")
_ERROR = {2, "2", "STATUS_CODE_ERROR"}
_DAY = timedelta(days=1)


class Config(Settings):
    """Settings of an `otlp` source.

    Attributes:
        paths: Files, globs or URLs. `{date}` stands for each requested day, as YYYY-MM-DD. Relative paths start at
            the config file's directory.
        storage_options: Options for fsspec, such as `endpoint_url`. No secrets: credentials come from the environment.
        spans: How to build traces from spans.
    """

    kind: Literal["otlp"]
    paths: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    storage_options: dict[str, object] = Field(default_factory=dict)
    spans: SpanSettings = SpanSettings()


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory."""
    return OtlpSource(config, base)


class OtlpSource:
    """Reads traces from files of spans."""

    def __init__(
        self, config: Config, base: Path, *, block_bytes: int = BLOCK_BYTES, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> None:
        self._config = config
        self._base = base
        self._block_bytes = block_bytes
        self._max_message_bytes = max_message_bytes

    write_back = None  # scores can't be written to files

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`. One entry stands for all files of a path, or of one day of a path."""
        found: list[SourceFile] = []
        for path in self._config.paths:
            dated = "{date}" in path
            for day in [start + n * _DAY for n in range((end - start).days + 1)] if dated else [start]:
                own, around = self._members(path, day)
                if own:
                    state = keys.version({f.path: f.fingerprint for f in [*own, *around]})
                    name = path.replace("{date}", day.isoformat())
                    found.append(SourceFile(name, state, day if dated else None, name))
        return sorted(found, key=lambda f: f.path)

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """See `tasks.sources.Source.read`. `line` is the trace's number within the entry."""
        return batches(traces(self.spans(file), self.settings))

    @property
    def settings(self) -> SpanSettings:
        """See `SpanSource.settings`."""
        return self._config.spans

    def spans(self, file: SourceFile) -> Iterator[Span | Reject]:
        """See `SpanSource.spans`."""
        day = file.day or date.min
        path = next(p for p in self._config.paths if p.replace("{date}", day.isoformat()) == file.path)
        return self._spans(*self._members(path, day))

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """See `SpanSource.traces`."""
        return traces(first(self.spans(file), most, lambda _: True), self.settings)

    def _members(self, path: str, day: date) -> tuple[list[SourceFile], list[SourceFile]]:
        """Return the files of a day, and the files of the day before and the day after."""

        def find(first: date, last: date) -> list[SourceFile]:
            return files.find([path], self._base, self._config.storage_options, first, last)

        own = find(day, day)
        names = {f.path for f in own}
        around = find(day - _DAY, day + _DAY) if own and "{date}" in path else []
        return own, [f for f in around if f.path not in names]

    def _spans(self, own: Sequence[SourceFile], around: Sequence[SourceFile]) -> Iterator[Span | Reject]:
        """Yield all spans of a day's files, then the spans of the same traces from the files around it."""
        ids: set[str] = set()
        for file in own:
            for item in self._items(file.path):
                if isinstance(item, Span):
                    ids.add(item.trace_id)
                yield item
        for file in around:  # their own day reports their rejects
            yield from (i for i in self._items(file.path) if isinstance(i, Span) and i.trace_id in ids)

    def _items(self, path: str) -> Iterator[Span | Reject]:
        blocks = files.read_blocks(path, self._base, self._config.storage_options, self._block_bytes)
        for number, message in enumerate(_messages(blocks, self._max_message_bytes), 1):
            if isinstance(message, _MessageError):
                yield _reject(path, number, message.reason, str(message))
                continue
            try:
                data = _decompressed(message, self._max_message_bytes)
                yield from _of_json(data) if data[:1] == b"{" else _of_protobuf(data)
            except _MessageError as exc:
                yield _reject(path, number, exc.reason, str(exc))
            except (ValueError, RecursionError, DecodeError, zstandard.ZstdError) as exc:
                binary = message[:1] == b"\n" or message.startswith(_ZSTANDARD)
                reason: Reason = "malformed_span" if binary else "malformed_json"
                yield _reject(path, number, reason, f"can't be decoded ({type(exc).__name__})")


class _MessageError(ValueError):
    """A message can't be read. The error text contains no value."""

    def __init__(self, problem: str, reason: Reason = "line_too_long") -> None:
        super().__init__(problem)
        self.reason: Reason = reason


def _reject(path: str, number: int, reason: Reason, problem: str) -> Reject:
    detail = f"line or message {number} of {Path(path).name}: {problem}; the traces with spans in it may be incomplete"
    return Reject(number, None, reason, detail, f"{path}, line or message {number}".encode())


def _messages(blocks: Iterable[bytes], limit: int) -> Iterator[bytes | _MessageError]:
    """Yield non-blank lines or length-prefixed messages, and an error for each one that is too long or cut off."""
    rest, buffer = iter(blocks), bytearray()

    def fill(size: int) -> bool:
        while len(buffer) < size:
            block = next(rest, b"")
            if not block:
                return False
            buffer.extend(block)
        return True

    fill(4)
    if buffer[:3] == b"\xef\xbb\xbf" or bytes(buffer[:1]).strip() in (b"", b"{"):
        del buffer[: 3 if buffer[:1] == b"\xef" else 0]
        yield from _lines(buffer, rest, limit)
        return
    while fill(4):
        size = int.from_bytes(buffer[:4], "big")
        if size > limit:
            yield _MessageError(f"a length of {size} bytes, limit {limit}; the rest of the file is left out")
            return
        if not fill(4 + size):
            break
        message = bytes(buffer[4 : 4 + size])
        del buffer[: 4 + size]
        yield message
    if buffer:
        yield _MessageError(f"cut off after {len(buffer)} bytes", "malformed_span")


def _lines(buffer: bytearray, rest: Iterator[bytes], limit: int) -> Iterator[bytes | _MessageError]:
    dropped = 0
    while True:
        *lines, tail = bytes(buffer).split(b"\n")
        for line in lines:
            if dropped or len(line) > limit:
                yield _MessageError(f"{dropped + len(line)} bytes, limit {limit}")
                dropped = 0
            elif line.strip():
                yield line.strip()
        buffer[:] = tail
        if len(buffer) > limit:
            dropped += len(buffer)
            buffer.clear()
        block = next(rest, b"")
        if not block:
            break
        buffer += block
    if dropped:
        yield _MessageError(f"{dropped + len(buffer)} bytes, limit {limit}")
    elif buffer.strip():
        yield bytes(buffer).strip()


def _decompressed(message: bytes, limit: int) -> bytes:
    if not message.startswith(_ZSTANDARD):
        return message
    with zstandard.ZstdDecompressor().stream_reader(message, read_across_frames=True) as reader:
        data = reader.read(limit + 1)
    if len(data) > limit:
        raise _MessageError(f"more than {limit} bytes after decompression")
    return data


def _of_json(data: bytes) -> Iterator[Span | Reject]:
    decoded = values.decode_json(data)
    for group in _list(decoded, "resourceSpans"):
        resource = _attributes_of_json(group.get("resource"))
        for scope in _list(group, "scopeSpans") or _list(group, "instrumentationLibrarySpans"):
            for span in _list(scope, "spans"):
                events = [(str(e.get("name")), _attributes_of_json(e)) for e in _list(span, "events")]
                status = span.get("status")
                code = status.get("code") if isinstance(status, Mapping) else None
                ids = [_id(span.get(k), size) for k, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8))]
                found = span_of(_attributes_of_json(span), events, resource)
                times = span.get("startTimeUnixNano"), span.get("endTimeUnixNano")
                yield _span(found, ids, str(span.get("name", "")), times, error=code in _ERROR)


def _of_protobuf(data: bytes) -> Iterator[Span | Reject]:
    for group in ExportTraceServiceRequest.FromString(data).resource_spans:
        resource = _attributes_of_protobuf(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                events = [(e.name, _attributes_of_protobuf(e.attributes)) for e in span.events]
                ids = [_zeroless(i.hex()) for i in (span.trace_id, span.span_id, span.parent_span_id)]
                found = span_of(_attributes_of_protobuf(span.attributes), events, resource)
                times = span.start_time_unix_nano, span.end_time_unix_nano
                yield _span(found, ids, span.name, times, error=span.status.code == 2)


def _span(
    found: Span, ids: Sequence[str | None], name: str, times: tuple[object, object], *, error: bool
) -> Span | Reject:
    trace_id, span_id, parent_id = ids
    if not trace_id or not span_id:
        return Reject(1, trace_id, "malformed_span", "a span has no trace id or span id, or one that is no id", b"")
    start, end = map(values.from_ns, times)
    return replace(
        found, trace_id=trace_id, span_id=span_id, parent_id=parent_id, name=name, start=start, end=end, error=error
    )


def _list(value: object, key: str) -> list[dict[str, Any]]:
    items = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _id(value: object, size: int) -> str | None:
    """Return an id as hexadecimal digits. Some exporters write base64."""
    if not isinstance(value, str) or not value:
        return None
    if len(value) == 2 * size and _HEX.fullmatch(value.lower()):
        return _zeroless(value.lower())
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return _zeroless(data.hex()) if len(data) == size else None


def _zeroless(text: str) -> str | None:
    return text if text.strip("0") else None


def _attributes_of_json(holder: object) -> dict[str, Any]:
    pairs = _list(holder, "attributes")
    return {a["key"]: _any_of_json(a.get("value")) for a in pairs if isinstance(a.get("key"), str)}


def _any_of_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue":
        return [_any_of_json(v) for v in _list(inner, "values")]
    if kind == "kvlistValue":
        return {str(a.get("key")): _any_of_json(a.get("value")) for a in _list(inner, "values")}
    if kind == "intValue":
        return values.whole(inner)
    return inner if kind in ("stringValue", "doubleValue", "boolValue") else None  # bytes are not text


def _attributes_of_protobuf(pairs: Iterable[Any]) -> dict[str, Any]:
    return {a.key: _any_of_protobuf(a.value) for a in pairs}


def _any_of_protobuf(value: Any) -> Any:  # noqa: ANN401 - protobuf has no types
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_any_of_protobuf(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes_of_protobuf(value.kvlist_value.values)
    return None if kind in (None, "bytes_value") else getattr(value, kind)
