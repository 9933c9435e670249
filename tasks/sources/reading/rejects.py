"""Rejects: the reason why a line can't be a trace, as a code and a message.

Messages contain only JSON paths and types. msgspec's messages are safe too: they never quote values or keys of maps.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, TypeVar

import msgspec

from tasks.core.types import Id, Trace
from tasks.sources import Reason, Reject

RAW_BYTES = 4096  # kept of a row that is too long
MOST_RAW_BYTES = 64 << 10  # longer rows are shortened, so many of them don't fill the memory
NAME_CHARS = 64  # limit for a field's name, because a key may be a text of a trace, which must not reach a log

_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`(?P<path> - at `\$[^`]*`)?$", re.DOTALL)

# Words of msgspec's messages, the most specific first.
_REASONS: tuple[tuple[str, Reason], ...] = (
    ("missing required field", "missing_field"),
    ("with a timezone component", "timestamp_without_zone"),
    ("Invalid RFC3339", "bad_timestamp"),
    ("of length >= 1 ", "empty_id"),
    ("of length <=", "out_of_range"),
    ("out of range", "out_of_range"),
    (">=", "out_of_range"),
)


class _Identified(msgspec.Struct):
    """The id of a line."""

    trace_id: Id


class _Dated(msgspec.Struct):
    """The time of a line."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]


T = TypeVar("T")


def reject(line_number: int, line: bytes, reason: Reason, detail: str) -> Reject:
    """Return a reject for a line, with its id and day if they can be read."""
    return Reject(line_number, _trace_id(line), reason, detail, line, _day(line))


def undecodable(line_number: int, line: bytes, exc: Exception) -> Reject:
    """Return a reject for a line that can't be decoded."""
    return reject(line_number, line, *_explain(line, exc))


def checked(line: int, raw: bytes) -> Trace | Reject:
    """Decode a trace from JSON and check it against the trace format. Its timestamp is converted to UTC."""
    try:
        trace = msgspec.json.decode(raw, type=Trace)
    except msgspec.DecodeError as exc:
        return undecodable(line, raw, exc)
    if path := b"\\u0000" in raw and nul_path(msgspec.to_builtins(trace)):
        return reject(line, raw, "nul_character", f"`str` with a NUL character - at `{path}`")
    if wide := too_large(trace):
        return reject(line, raw, "out_of_range", wide)
    return msgspec.structs.replace(trace, timestamp=trace.timestamp.astimezone(UTC))


def too_long(line_number: int, head: bytes, size: int, limit: int) -> Reject:
    """Return a reject for a line that is too long, with only the beginning of the line."""
    raw = head[: min(limit, RAW_BYTES)]
    raw += b" ... [%d of %d bytes]" % (len(raw), size)
    return Reject(line_number, None, "line_too_long", f"line of {size} bytes, limit {limit}", raw)


def kept(raw: bytes, *, identified: bool) -> str:
    """Return the text of a row for the quarantine. Long rows are shortened.

    Args:
        identified: Whether the trace's id is known. Without an id, no text of a long row is kept, because it could not
            be found later for deletion.
    """
    if len(raw) > MOST_RAW_BYTES:
        head = raw[:RAW_BYTES] if identified else b""
        raw = head + b" ... [%d of %d bytes]" % (len(head), len(raw))
    return raw.decode("utf-8", "backslashreplace")


def shown(name: str) -> str:
    """Return the beginning of a name, without unprintable characters, for messages."""
    return "".join(c if c.isprintable() else "?" for c in name[:NAME_CHARS])


def nul_path(value: object, path: str = "$") -> str | None:
    """Return the JSON path of the first string with a NUL character in a trace as builtins, without keys of maps."""
    if isinstance(value, str):
        return path if "\0" in value else None
    items: Iterable[tuple[str, object]] = ()
    if isinstance(value, Mapping):
        if any("\0" in key for key in value):
            return f"{path}[...]"
        items = ((f"{path}[...]" if path == "$.tags" else f"{path}.{key}", item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        items = ((f"{path}[{i}]", item) for i, item in enumerate(value))
    return next((found for sub, item in items if (found := nul_path(item, sub))), None)


def too_large(trace: Trace) -> str | None:
    """Describe the first whole number that does not fit its column; None if all do."""
    numbers = [
        ("$.tokens_in", trace.tokens_in, 64),
        ("$.tokens_out", trace.tokens_out, 64),
        ("$.repeat", trace.repeat, 32),
    ]
    numbers += [(f"$.chunks[{i}].rank", chunk.rank, 32) for i, chunk in enumerate(trace.chunks)]
    for i, citation in enumerate(trace.citations or ()):
        numbers += [(f"$.citations[{i}].start", citation.start, 32), (f"$.citations[{i}].end", citation.end, 32)]
    for path, number, bits in numbers:
        if number is not None and not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            return f"Expected `int` of {bits} bits - at `{path}`"
    return None


def _explain(line: bytes, exc: Exception) -> tuple[Reason, str]:
    if isinstance(exc, RecursionError):
        return "malformed_json", "nested too deeply"
    if isinstance(exc, OverflowError):
        return "bad_timestamp", "outside the years 1 to 9999 in UTC - at `$.timestamp`"
    message = str(exc)
    if isinstance(exc, msgspec.ValidationError):
        if unknown := _UNKNOWN.match(message):
            return "unknown_field", f"Object contains unknown field `{shown(unknown['name'])}`{unknown['path'] or ''}"
        return next((reason for words, reason in _REASONS if words in message), "wrong_type"), message
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        return "invalid_utf8", f"not UTF-8 (byte {bad.start})"
    return ("invalid_utf8" if "surrogate" in message else "malformed_json"), message


def _trace_id(line: bytes) -> str | None:
    """The line's trace id, if it parses as a JSON object with a usable one."""
    found = _decoded(line, _Identified)
    return None if found is None or "\0" in found.trace_id else found.trace_id


def _day(line: bytes) -> date | None:
    """The day of the line's timestamp in UTC, if it parses as a JSON object with one that has a zone."""
    found = _decoded(line, _Dated)
    try:
        return None if found is None else found.timestamp.astimezone(UTC).date()
    except OverflowError:  # outside the years 1 to 9999
        return None


def _decoded(line: bytes, form: type[T]) -> T | None:
    """The line as this struct; None if it is something else."""
    try:
        return msgspec.json.decode(line, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
