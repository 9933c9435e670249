"""Values of records: JSON that may be damaged or written as text, ids, numbers and times.

Nothing here raises for what a value is, but `decode_json`.
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
    """A JSON value; NaN and Infinity may be in it. Half a surrogate pair and what is not UTF-8 become U+FFFD.

    Raises:
        ValueError: It is not JSON (`msgspec.DecodeError` is one).
        RecursionError: It is nested too deeply.
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
    """The JSON value that a text is written as; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return decode_json(value.encode())
        except (ValueError, RecursionError):
            return value
    return value


def cut_off(value: object) -> bool:
    """Whether a text begins like a JSON object or list, but is none: the end was cut off when it was logged."""
    return isinstance(value, str) and bool(_JSON.match(value)) and parsed(value) is value


def scalar(value: object) -> str | None:
    """A text or whole number as an id or label; None for anything else and for an empty text."""
    if value is None or isinstance(value, str):  # nearly all are
        return value or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 2**64 else None
    return None


def number(value: object) -> float | None:
    """A finite number, also one that is written as text."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """A whole number, also one that is written as text or with a decimal point."""
    found = number(value)
    return int(found) if found is not None and found.is_integer() and abs(found) < 2**63 else None


def from_ns(value: object) -> datetime | None:
    """A time in UTC from nanoseconds since 1970; None where it is none."""
    try:
        return _EPOCH + timedelta(microseconds=int(value) // 1000) if isinstance(value, int | str) and value else None
    except (ValueError, OverflowError):
        return None


def from_iso(value: object) -> datetime | None:
    """A time in UTC from ISO 8601 or a column of times, which is UTC where it names no zone; None where it is none."""
    text = value.isoformat() if isinstance(value, datetime) else value  # pandas has a class of its own
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def mapping(value: object) -> dict[str, Any]:
    """An object, also one that is written as text; empty where it is none."""
    value = parsed(value)
    return value if isinstance(value, dict) else {}


def moment(value: object) -> datetime | None:
    """A time in UTC from ISO 8601, or from a column of times; one without a zone is UTC."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return from_iso(value)
