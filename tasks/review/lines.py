"""One line of people's labels: a label of a claim or of an answer, or a grade. The format is in docs/reviews.md.

Left out: reading files (`files.py`), and finding the claim of a line (`load.py`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tasks.core.grades import GRADES, RANGES
from tasks.core.labeling import OF_ANSWERS, OF_CLAIMS, SAMPLING
from tasks.core.types import Id
from tasks.sources.reading.rejects import nul_path, undecodable

CONTEXT = "context"  # shown to people with a line, never read back

Place = Annotated[int, Meta(ge=0, lt=2**31)]


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One line: a label of a claim, a label of a whole answer, or a grade of a whole answer.

    A claim is named by `claim`, `claim_id` or `span`. A line with a null label and without a value was not filled in. A
    grade with a null value is N/A.
    """

    trace_id: Id
    label: str | UnsetType | None = UNSET
    claim: str | None = None
    claim_id: Id | None = None
    span: tuple[Place, Place] | None = None
    misused: bool | None = None
    comment: Annotated[str, Meta(max_length=10_000)] | None = None
    reviewer: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    reviewed_at: Annotated[datetime, Meta(tz=True)] | None = None
    sampling: str | None = None
    adjudicated: bool | None = None
    grade: str | None = None
    value: float | UnsetType | None = UNSET
    context: msgspec.Raw = msgspec.Raw()

    @property
    def blank(self) -> bool:
        """Whether the line was not filled in."""
        return self.label is None and self.value is UNSET


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line can't be used.

    Attributes:
        trace_id: Trace id of the line, if it could be read.
        reason: Machine-readable reason.
        detail: Message for people, without text of a trace.
    """

    trace_id: str | None
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a file.

    Attributes:
        number: Position in the file, from 1: the number of the line, or for Label Studio, of the annotation.
        raw: The original line, without its context.
        content: The parsed line, the reason why it can't be used, or None if it was not filled in.
    """

    number: int
    raw: str
    content: Line | Refusal | None


_DECODER = msgspec.json.Decoder(Line)


def from_json(number: int, raw: bytes) -> Entry:
    """Parse a JSON line."""
    try:
        return _entry(number, _bare(raw), _DECODER.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        bad = undecodable(number, raw, exc)
        return Entry(number, _bare(raw), Refusal(bad.trace_id, bad.reason, bad.detail))


def from_fields(number: int, fields: Mapping[str, Any]) -> Entry:
    """Make a line from the values of its fields. Numbers, times and booleans may be texts."""
    text = json.dumps(fields, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return Entry(
            number, json.dumps(fields, default=str), Refusal(None, "invalid_utf8", "not UTF-8; save it as UTF-8")
        )
    try:
        return _entry(number, text, msgspec.convert(fields, Line, strict=False))
    except msgspec.ValidationError as exc:
        bad = undecodable(number, text.encode(), exc)
        return Entry(number, text, Refusal(bad.trace_id, bad.reason, bad.detail))


def _entry(number: int, raw: str, line: Line) -> Entry:
    try:
        at = line.reviewed_at and line.reviewed_at.astimezone(UTC)
    except OverflowError:
        detail = "outside the years 1 to 9999 in UTC - at `$.reviewed_at`"
        return Entry(number, raw, Refusal(line.trace_id, "bad_timestamp", detail))
    line = msgspec.structs.replace(line, reviewed_at=at, context=msgspec.Raw())
    if problem := next(_problems(line), None):
        return Entry(number, raw, Refusal(None if problem[0] == "nul_character" else line.trace_id, *problem))
    return Entry(number, raw, None if line.blank else line)


def _bare(raw: bytes) -> str:
    """Remove the context of a JSON line, so that answer and chunks are not copied to the quarantine."""
    if b'"' + CONTEXT.encode() + b'"' in raw:
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and CONTEXT in fields:
            raw = json.dumps({k: v for k, v in fields.items() if k != CONTEXT}, ensure_ascii=False).encode(
                "utf-8", "backslashreplace"
            )
    return raw.decode("utf-8", "backslashreplace")


def _problems(line: Line) -> Iterator[tuple[str, str]]:
    """Yield problems of a line that can be found without the lake."""
    if path := nul_path({f: getattr(line, f) for f in line.__struct_fields__ if f != CONTEXT}):
        yield "nul_character", f"`str` with a NUL character - at `{path}`"
    if line.sampling is not None and line.sampling not in SAMPLING:
        yield "unknown_sampling", f"`sampling` is none of {', '.join(SAMPLING)}"
    yield from _of_grade(line) if line.grade is not None else _of_label(line)


def _of_label(line: Line) -> Iterator[tuple[str, str]]:
    named = [name for name in ("claim", "claim_id", "span") if getattr(line, name) is not None]
    if line.label is UNSET:
        yield "missing_field", "Object missing required field `label`"
    if line.value is not UNSET:
        yield "value_without_grade", "`value` is of a grade: name it in `grade`"
    if line.label is not None and line.label not in (*OF_CLAIMS, *OF_ANSWERS):
        yield "unknown_label", f"the label is none of {', '.join((*OF_CLAIMS, *OF_ANSWERS))}"
    if len(named) > 1:
        yield "several_targets", f"{' and '.join(named)} are given; one of them is enough"
    if line.label in OF_ANSWERS and (named or line.misused is not None):
        yield "label_of_answer", f"{line.label} is a label of an answer as a whole, without claim or `misused`"
    if line.label in OF_CLAIMS and not named:
        yield "no_claim", f"{line.label} is a label of a claim: name it by `claim`, `claim_id` or `span`"


def _of_grade(line: Line) -> Iterator[tuple[str, str]]:
    given = [name for name in ("claim", "claim_id", "span", "misused") if getattr(line, name) is not None]
    if line.grade not in GRADES:
        yield "unknown_grade", f"the grade is none of {', '.join(GRADES)}"
    elif given or isinstance(line.label, str):
        yield "grade_of_answer", "a grade is of an answer as a whole, without claim, `label` or `misused`"
    elif isinstance(line.value, UnsetType):
        if not line.blank:
            yield (
                "missing_field",
                "Object missing required field `value`: a number, or null where the grade does not apply",
            )
    elif line.value is not None:
        least, most = RANGES[line.grade]
        if not (least <= line.value <= most and line.value == int(line.value)):
            yield "bad_value", f"the value of {line.grade} is a whole number from {least} to {most}, or null"
