"""Parse values of records: JSON (maybe damaged or as text), ids, numbers and times.

Only `decode_json` raises errors. The other functions return None, an empty value or the value itself.
"""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = re.compile(r'\s*(\{\s*"|\[\s*[{"])')


def decode_json(data: bytes) -> Any:  # noqa: ANN401 - JSON
    """Decode JSON. Accepts NaN and Infinity; replaces lone surrogates and invalid UTF-8 by U+FFFD.

    Raises:
        ValueError: The data is not JSON (including `msgspec.DecodeError`).
        RecursionError: The value is nested too deeply.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        try:
            return _without_surrogates(json.loads(data.decode(errors="replace")))
        except ValueError:
            raise exc from None


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {str(_without_surrogates(k)): _without_surrogates(v) for k, v in value.items()}
    return [_without_surrogates(v) for v in value] if isinstance(value, list) else value


def parsed(value: object) -> object:
    """Parse a text that is a JSON object, list or string. Any other value is returned unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return decode_json(value.encode())
        except (ValueError, RecursionError):
            return value
    return value


def cut_off(value: object) -> bool:
    """Whether a text starts like a JSON object or list but is not valid JSON: the log has cut it off."""
    return isinstance(value, str) and bool(_JSON.match(value)) and parsed(value) is value


def scalar(value: object) -> str | None:
    """Return a text, number or boolean as a text, for ids and labels; None for other values and empty texts."""
    if value is None or isinstance(value, str):  # nearly all are
        return value or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 2**64 else None
    return None


def number(value: object) -> float | None:
    """Return a finite number, also from text; otherwise None."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """Return a whole number of 64 bits, also from text or a float; otherwise None."""
    found = number(value)
    return int(found) if found is not None and found.is_integer() and abs(found) < 2**63 else None


def from_ns(value: object) -> datetime | None:
    """Return a time in UTC from nanoseconds since 1970; None if the value is invalid or 0."""
    try:
        return _EPOCH + timedelta(microseconds=int(value) // 1000) if isinstance(value, int | str) and value else None
    except (ValueError, OverflowError):
        return None


def from_iso(value: object) -> datetime | None:
    """Return a time in UTC from ISO 8601 or a datetime; None if it is invalid. Without a zone, it is UTC."""
    text = value.isoformat() if isinstance(value, datetime) else value  # pandas has a class of its own
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def mapping(value: object) -> dict[str, Any]:
    """Return an object, also from JSON text; empty for any other value."""
    value = parsed(value)
    return value if isinstance(value, dict) else {}


def moment(value: object) -> datetime | None:
    """Return a time in UTC from a datetime or ISO 8601. Without a zone, it is UTC."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return from_iso(value)
