"""Import people's labels into the lake: a file becomes a part of `reviews` (docs/methods.md#peoples-labels).

A file is identified by a hash of its content. Importing it again changes nothing, except for refused lines whose traces
have arrived since. Labels of earlier files are not stored again, so a growing export can be imported repeatedly. SQL
(`sql/views/`) decides to which claim of a recipe a label belongs, and which of several labels counts. Formats:
docs/reviews.md.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.errors import DataError
from tasks.core.schemas import CLAIMS, QUARANTINE, REVIEWS, TRACES
from tasks.review.files import content, entries
from tasks.review.lines import Entry, Line, Refusal
from tasks.run.context import Context
from tasks.run.redacted import requested_redactions
from tasks.run.result import StageResult
from tasks.store.lake import conform, empty, from_rows
from tasks.store.query import Queries

STAGE = "reviews"
REDACTED = "text_redacted"  # not counted as bad: the text was redacted after the label was given
TARGETS = pa.schema([("line", pa.int64()), ("trace_id", pa.string()), ("claim_id", pa.string())])

Row: TypeAlias = Mapping[str, Any]
Span: TypeAlias = tuple[int | None, int | None]
NOWHERE: Span = (None, None)  # for whole answers, and for facts that share a sentence


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a file.

    Attributes:
        key: Hash of the file's content.
        reviews: Rows of `REVIEWS`, without repeated labels.
        refused: Rows of `QUARANTINE`.
        repeated: Number of lines that repeat an earlier line of the file.
        skipped: Number of lines that are not filled in.
    """

    key: str
    reviews: pa.Table
    refused: pa.Table
    repeated: int
    skipped: int = 0

    @property
    def lines(self) -> int:
        """Number of lines that are filled in."""
        return int(self.reviews.num_rows + self.refused.num_rows) + self.repeated

    @property
    def bad(self) -> Counter[str]:
        """Number of refused lines by reason, without those whose text was redacted."""
        reasons = Counter(pl.DataFrame(self.refused)["reason"])
        del reasons[REDACTED]
        return reasons

    def check(self, path: Path, limit: float, remedy: str) -> None:
        """Refuse the file if more of its lines are bad than the config allows.

        Args:
            limit: `gates.max_quarantined_share`.
            remedy: End of the message: what was done, and what to do.

        Raises:
            DataError: Too many lines are bad.
        """
        reasons = self.bad
        if reasons.total() > limit * self.lines:
            top = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common(3))
            raise DataError(
                f"{path}: {reasons.total()} of {self.lines} lines were refused ({top}), more than "
                f"gates.max_quarantined_share = {limit:.1%}. {remedy}"
            )


def import_reviews(ctx: Context, path: Path) -> StageResult:
    """Store the labels of a file. The result counts new labels, and labels that were already stored.

    Raises:
        SourceError: The file can't be read.
        DataError: More lines were refused than the config allows. They are stored in `quarantine`, and no label of the
            file is stored.
    """
    with ctx.queries() as queries:
        found = read(ctx, queries, path)
    name = f"reviews-{found.key}"
    mine = ctx.lake.find(REVIEWS, found.key)
    others = [pl.DataFrame(p.read(["review_id"])) for p in ctx.lake.parts(REVIEWS) if p.name != found.key]
    before = pl.DataFrame(conform(mine.read(), REVIEWS) if mine else empty(REVIEWS))
    if found.refused.num_rows:
        ctx.lake.write(QUARANTINE, name, found.refused)
    else:  # an earlier import may have refused lines whose traces have arrived since
        ctx.lake.drop(QUARANTINE, name)
    command = ctx.sql_command(f"FROM quarantine WHERE stage = '{STAGE}'")
    found.check(
        path,
        ctx.config.gates.max_quarantined_share,
        f"No label was added. Read the refused lines with {command}, then correct the file or raise the limit.",
    )
    earlier = pl.concat([before.select("review_id"), *others])
    new = pl.DataFrame(found.reviews).join(earlier, on="review_id", how="anti", maintain_order="left")
    if new.height or mine is None:
        kept = pl.concat([before, new])  # keep earlier labels, even if their text was redacted since
        rows = conform(kept.to_arrow(), REVIEWS)
        ctx.lake.write(REVIEWS, found.key, rows, inputs=keys.version(kept["review_id"].sort().to_list()))
    reused = found.reviews.num_rows + found.repeated - new.height
    return StageResult(STAGE, computed=new.height, reused=reused, notes=tuple(_notes(found)))


def read(ctx: Context, queries: Queries, path: Path) -> Labels:
    """Read the labels of a file and locate them in the answers of the lake. Nothing is written.

    Raises:
        SourceError: The file can't be read.
        DataError: A CSV file lacks a column or has a column twice.
    """
    data = content(path)
    found = list(entries(data, path))
    places = _targets(ctx, queries, found)
    gone = requested_redactions(ctx.lake)
    now = datetime.now(UTC)
    rows: dict[str, dict[str, object]] = {}
    refused: list[dict[str, object]] = []
    repeated = 0
    for entry in found:
        line = entry.content
        if isinstance(line, Line):
            place = places[entry.number]
            span = _placed(line, place, gone)
            if not isinstance(span, Refusal):
                row = _row(line, span, place["date"], redacted=place["text_redacted"])
                repeated += row["review_id"] in rows
                rows.setdefault(str(row["review_id"]), {**row, "source": str(path), "imported_at": now})
                continue
            line = span
        if line is not None:
            refused.append({
                "source": str(path),
                "line": entry.number,
                "trace_id": line.trace_id,
                "stage": STAGE,
                "reason": line.reason,
                "detail": line.detail,
                "raw": "" if _hidden(entry, line, places, gone) else entry.raw,
            })  # fmt: skip
    skipped = sum(entry.content is None for entry in found)
    short = keys.key(data, size=keys.SHORT_HEX)
    return Labels(short, from_rows(rows.values(), REVIEWS), from_rows(refused, QUARANTINE), repeated, skipped)


def _hidden(entry: Entry, refusal: Refusal, places: Mapping[int, Row], gone: frozenset[str]) -> bool:
    """Whether a refused line may quote a redacted text, which must not get into the quarantine."""
    redacted = entry.number in places and places[entry.number]["text_redacted"]
    return bool(redacted) or refusal.reason == REDACTED or any(trace_id in entry.raw for trace_id in gone)


def _targets(ctx: Context, queries: Queries, found: Sequence[Entry]) -> dict[int, Row]:
    """Rows of `sql/review/targets.sql` by line, for lines that name a trace."""
    named = [
        {"line": e.number, "trace_id": e.content.trace_id, "claim_id": getattr(e.content, "claim_id", None)}
        for e in found
        if e.content is not None and e.content.trace_id is not None
    ]
    if not named:
        return {}
    lines = pa.Table.from_pylist(named, schema=TARGETS)
    by_id = lines["claim_id"].null_count < lines.num_rows
    relations = {
        "line": lines,
        "traces": ctx.lake.parts(TRACES),
        "claims": ctx.lake.parts(CLAIMS) if by_id else [],
    }
    rows = pl.DataFrame(queries.run("review/targets", relations)).iter_rows(named=True)
    return {row["line"]: row for row in rows}


def _placed(line: Line, place: Row, gone: frozenset[str]) -> Span | Refusal:
    """Locate a label in the answer; returns its span, or why it can't be located."""
    answer: str | None = place["answer"]
    by_text = line.claim is not None or line.span is not None
    if (by_text and place["text_redacted"]) or (answer is None and line.trace_id in gone):
        return Refusal(line.trace_id, REDACTED, "the text of the trace was redacted; give a `claim_id`")
    if answer is None:
        return Refusal(line.trace_id, "unknown_trace", "no trace with this id is in the lake; complete its day first")
    if line.claim_id is not None:
        return _of_id(line, place)
    if line.span is not None:
        return _of_span(line, line.span, len(answer))
    return NOWHERE if line.claim is None else _of_text(line, line.claim, answer)


def _of_id(line: Line, claim: Row) -> Span | Refusal:
    if not claim["claim_known"]:
        return Refusal(line.trace_id, "unknown_claim", "the trace has no claim with this id")
    return NOWHERE if claim["shared"] else (claim["span_start"], claim["span_end"])


def _of_span(line: Line, span: tuple[int, int], characters: int) -> Span | Refusal:
    if span[0] < span[1] <= characters:
        return span
    detail = f"[{span[0]}, {span[1]}] is not a valid span of an answer of {characters} characters"
    return Refusal(line.trace_id, "bad_span", detail)


def _of_text(line: Line, claim: str, answer: str) -> Span | Refusal:
    """Find the only occurrence of a claim in the answer, ignoring differences in white space."""
    words = [re.escape(word) for word in claim.split()]
    found = list(re.finditer(r"\s+".join(words), answer)) if words else []
    if len(found) == 1:
        return found[0].span()
    if found:
        detail = f"the answer has this text {len(found)} times; give `span` or `claim_id`"
        return Refusal(line.trace_id, "claim_ambiguous", detail)
    return Refusal(line.trace_id, "claim_not_found", "the answer does not have this text; give `span` or `claim_id`")


def _row(line: Line, span: Span, day: date, *, redacted: bool) -> dict[str, object]:
    """A row of `reviews`. The id ignores the comment: otherwise it could confirm a guess of a redacted text."""
    given: dict[str, object] = {
        "trace_id": line.trace_id,
        "span_start": span[0],
        "span_end": span[1],
        "claim_id": line.claim_id,
        "label": line.label if isinstance(line.label, str) else None,
        "misused": line.misused,
        "reviewer": line.reviewer,
        "reviewed_at": line.reviewed_at,
        "sampling": line.sampling,
    }
    # Set only if given, so that ids of labels without these fields stay the same.
    if line.adjudicated:
        given["adjudicated"] = True
    if line.grade is not None:
        given |= {"grade": line.grade, "value": line.value}
    comment = None if redacted or not line.comment else line.comment
    return {"review_id": keys.key(msgspec.json.encode(given)), "date": day, **given, "comment": comment}


def _notes(found: Labels) -> list[str]:
    """Notes for the user about a file."""
    bad = found.bad.total()
    redacted = pl.DataFrame(found.refused)["reason"].eq(REDACTED).sum()
    notes = [f"{bad} of {found.lines} lines were refused; see quarantine."] if bad else []
    if redacted:
        notes.append(f"{redacted} of {found.lines} lines are of traces whose text was redacted; see quarantine.")
    if found.skipped:
        notes.append(f"{found.skipped} lines have no label; they were left out.")
    return notes
