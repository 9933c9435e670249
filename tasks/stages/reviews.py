"""People's labels into the lake (METHODS section 13): a file of JSON lines becomes a part of `reviews`.

A file is known by its content: the same bytes again are nothing to do, unless lines of them were refused, since their
traces may have come since. A label that an earlier file brought already is not stored twice, so that a growing export
can be imported again and again. What a line is of is found here; which claim that is under a recipe, and which of
several labels counts, is SQL (`sql/reviewed_claims.sql`). The format is described in docs/reviews.md.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from tasks.core import keys
from tasks.core.errors import DataError, SourceError
from tasks.core.schemas import CLAIMS, QUARANTINE, REVIEWS, TRACES
from tasks.core.types import Id
from tasks.sources import _rejects
from tasks.stages.context import Context, StageResult
from tasks.store.lake import from_rows
from tasks.store.query import Queries

STAGE = "reviews"
OF_CLAIMS = ("supported", "partially_supported", "unsupported", "contradicted", "cant_tell")
OF_ANSWERS = ("right", "wrong")
SAMPLING = ("random", "misused", "uncertain", "disputed")
TARGETS = pa.schema([("line", pa.int64()), ("trace_id", pa.string()), ("claim_id", pa.string())])
_MARK = b"\xef\xbb\xbf"

Place = Annotated[int, Meta(ge=0, lt=2**31)]
Span: TypeAlias = tuple[int | None, int | None]
NOWHERE: Span = (None, None)  # of answers as a whole, and of facts that share their sentence with others


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file: a label of one claim, named in one of three ways, or of an answer as a whole."""

    trace_id: Id
    label: str
    claim: str | None = None
    claim_id: Id | None = None
    span: tuple[Place, Place] | None = None
    misused: bool | None = None
    reviewer: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    reviewed_at: Annotated[datetime, Meta(tz=True)] | None = None
    sampling: str | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """What is in a file.

    Attributes:
        key: Hash of its content.
        reviews: Rows of `REVIEWS`, each label once.
        refused: Rows of `QUARANTINE`.
        repeated: Lines that say what an earlier one of the file says.
    """

    key: str
    reviews: pa.Table
    refused: pa.Table
    repeated: int

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return int(self.reviews.num_rows + self.refused.num_rows) + self.repeated


def import_reviews(ctx: Context, path: Path) -> StageResult:
    """Store the labels of a file; returns labels that are new, and those that were known.

    Raises:
        SourceError: The file can't be read.
        DataError: More lines were refused than the config allows; they can be seen in `quarantine`, and no label of the
            file was kept.
    """
    with ctx.queries() as queries:
        found = read(ctx, queries, path)
    name = f"reviews-{found.key}"
    mine = ctx.lake.find(REVIEWS, found.key)
    others = {i for p in ctx.lake.parts(REVIEWS) if p.name != found.key for i in _ids(p.read(["review_id"]))}
    before = {r["review_id"]: r for r in mine.read().to_pylist()} if mine else {}
    _check_share(ctx, found, name, path)
    new = [r for r in found.reviews.to_pylist() if r["review_id"] not in others and r["review_id"] not in before]
    if new or mine is None:
        kept = [*before.values(), *new]  # an earlier label stays, though its text may not be found any more
        ids = sorted(r["review_id"] for r in kept)
        ctx.lake.write(REVIEWS, found.key, from_rows(kept, REVIEWS), inputs=keys.version(ids))
    refused = found.refused.num_rows
    notes = (f"{refused} of {found.lines} lines were refused; see quarantine.",) if refused else ()
    known = found.reviews.num_rows + found.repeated - len(new)
    return StageResult(STAGE, computed=len(new), reused=known, notes=notes)


def read(ctx: Context, queries: Queries, path: Path) -> Labels:
    """The labels of a file, placed in the answers of the lake; nothing is written.

    Raises:
        SourceError: The file can't be read.
    """
    data = _bytes(path)
    refused: list[dict[str, object]] = []

    def refuse(number: int, raw: bytes, trace_id: str | None, reason: str, detail: str) -> None:
        text = raw.decode("utf-8", "backslashreplace")
        row = {"source": str(path), "line": number, "trace_id": trace_id, "stage": STAGE}
        refused.append({**row, "reason": reason, "detail": detail, "raw": text})

    lines: list[tuple[int, bytes, Line]] = []
    for number, raw in _split(data):
        try:
            line = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as exc:
            bad = _rejects.undecodable(number, raw, exc)
            refuse(number, raw, bad.trace_id, bad.reason, bad.detail)
            continue
        if problem := _form(line, raw):
            refuse(number, raw, line.trace_id, *problem)
        else:
            lines.append((number, raw, line))
    places = {row["line"]: row for row in _targets(ctx, queries, lines)}
    now = datetime.now(UTC)
    rows: dict[str, dict[str, object]] = {}
    repeated = 0
    for number, raw, line in lines:
        span = _placed(line, places[number])
        if isinstance(span, _Unplaced):
            refuse(number, raw, line.trace_id, span.reason, span.detail)
            continue
        row = _row(line, span, places[number]["date"])
        repeated += row["review_id"] in rows
        rows.setdefault(str(row["review_id"]), {**row, "source": str(path), "imported_at": now})
    refused.sort(key=lambda r: int(str(r["line"])))
    content = keys.key(data, size=keys.SHORT_HEX)
    return Labels(content, from_rows(rows.values(), REVIEWS), from_rows(refused, QUARANTINE), repeated)


@dataclass(frozen=True, slots=True)
class _Unplaced:
    """Why a line is of nothing that the lake holds."""

    reason: str
    detail: str


def _bytes(path: Path) -> bytes:
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return bytes(stream.read())
    except OSError as error:
        said = "there is no such file" if isinstance(error, FileNotFoundError) else f"can't be read ({error})"
        raise SourceError(f"{path}: {said}. Give a file of people's labels, as docs/reviews.md has it.") from error


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(data.removeprefix(_MARK).split(b"\n"), 1):
        if line.strip(b" \t\r"):
            yield number, line


_DECODER = msgspec.json.Decoder(Line)


def _decode(raw: bytes) -> Line:
    line = _DECODER.decode(raw)
    at = line.reviewed_at and line.reviewed_at.astimezone(UTC)
    return msgspec.structs.replace(line, reviewed_at=at)


def _form(line: Line, raw: bytes) -> tuple[str, str] | None:
    """What is wrong with a line by itself: the first of its problems."""
    return next(_problems(line, raw), None)


def _problems(line: Line, raw: bytes) -> Iterator[tuple[str, str]]:
    named = [name for name in ("claim", "claim_id", "span") if getattr(line, name) is not None]
    if b"\\u0000" in raw and (path := _rejects.nul_path(msgspec.to_builtins(line))):
        yield "nul_character", f"`str` with a NUL character - at `{path}`"
    if line.label not in OF_CLAIMS + OF_ANSWERS:
        yield "unknown_label", f"the label is none of {', '.join(OF_CLAIMS + OF_ANSWERS)}"
    if line.sampling is not None and line.sampling not in SAMPLING:
        yield "unknown_sampling", f"`sampling` is none of {', '.join(SAMPLING)}"
    if len(named) > 1:
        yield "several_targets", f"{' and '.join(named)} are given; one of them is enough"
    if line.label in OF_ANSWERS and (named or line.misused is not None):
        yield "label_of_answer", f"{line.label} is a label of an answer as a whole, without claim or `misused`"
    if line.label in OF_CLAIMS and not named:
        yield "no_claim", f"{line.label} is a label of a claim: name it by `claim`, `claim_id` or `span`"


def _targets(ctx: Context, queries: Queries, lines: Sequence[tuple[int, bytes, Line]]) -> list[dict[str, Any]]:
    """Rows of `sql/review_targets.sql`."""
    asked = [{"line": n, "trace_id": line.trace_id, "claim_id": line.claim_id} for n, _, line in lines]
    by_id = any(line.claim_id is not None for _, _, line in lines)
    relations = {
        "line": pa.Table.from_pylist(asked, schema=TARGETS),
        "traces": ctx.lake.parts(TRACES),
        "claims": ctx.lake.parts(CLAIMS) if by_id else [],
    }
    return queries.run("review_targets", relations).to_pylist() if asked else []


def _placed(line: Line, place: dict[str, Any]) -> Span | _Unplaced:
    """Where in the answer the label belongs."""
    answer: str | None = place["answer"]
    if answer is None:
        return _Unplaced("unknown_trace", "no trace with this id is in the lake; complete its day first")
    if line.claim_id is not None:
        return _of_id(place)
    if line.span is not None:
        return _of_span(line.span, len(answer))
    return NOWHERE if line.claim is None else _of_text(line.claim, answer)


def _of_id(claim: dict[str, Any]) -> Span | _Unplaced:
    if not claim["claim_known"]:
        return _Unplaced("unknown_claim", "the trace has no claim with this id")
    return NOWHERE if claim["shared"] else (claim["span_start"], claim["span_end"])


def _of_span(span: tuple[int, int], characters: int) -> Span | _Unplaced:
    if span[0] < span[1] <= characters:
        return span
    return _Unplaced("bad_span", f"[{span[0]}, {span[1]}] is no span of an answer of {characters} characters")


def _of_text(claim: str, answer: str) -> Span | _Unplaced:
    """Its only place in the answer, however words are spaced and lines are broken."""
    words = [re.escape(word) for word in claim.split()]
    found = list(re.finditer(r"\s+".join(words), answer)) if words else []
    if len(found) == 1:
        return found[0].span()
    if found:
        return _Unplaced("claim_ambiguous", f"the answer has this text {len(found)} times; give `span` or `claim_id`")
    return _Unplaced("claim_not_found", "the answer does not have this text; give `span` or `claim_id`")


def _row(line: Line, span: Span, day: date) -> dict[str, object]:
    given = {
        "trace_id": line.trace_id,
        "span_start": span[0],
        "span_end": span[1],
        "claim_id": line.claim_id,
        "label": line.label,
        "misused": line.misused,
        "reviewer": line.reviewer,
        "reviewed_at": line.reviewed_at,
        "sampling": line.sampling,
    }
    return {"review_id": keys.key(msgspec.json.encode(given)), "date": day, **given}


def _check_share(ctx: Context, found: Labels, name: str, path: Path) -> None:
    refused, limit = found.refused.num_rows, ctx.config.gates.max_quarantined_share
    if refused:
        ctx.lake.write(QUARANTINE, name, found.refused)
    else:  # an earlier try may have refused lines whose traces have come since
        ctx.lake.drop(QUARANTINE, name)
    if refused > limit * found.lines:
        reasons = Counter(found.refused["reason"].to_pylist()).most_common(3)
        top = ", ".join(f"{reason} {n}" for reason, n in reasons)
        raise DataError(
            f"{path}: {refused} of {found.lines} lines were refused ({top}), more than "
            f"gates.max_quarantined_share = {limit:.1%}. No label was added. Read the refused lines with "
            f"leadline sql \"FROM quarantine WHERE stage = '{STAGE}'\", then mend the file or raise the limit."
        )


def _ids(rows: pa.Table) -> list[str]:
    found: list[str] = rows["review_id"].to_pylist()
    return found
