"""Retention: redacts texts and explanations in the lake that are too old or that a person asked to delete.

Scores, labels, spans and ids are kept. `traces` records which rows were redacted, when and why. Parts are rewritten in
place with the same names and tokens, so nothing is computed again.

If a run is killed, the next run redacts the rest. A request is recorded before anything is redacted. `traces` is marked
before derived rows are rewritten, because no stage reads a redacted text. The nights with pages to delete are noted
until the pages are deleted. `flows/lake/privacy.py` rebuilds the warehouse and the report.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from tasks.core import keys
from tasks.core.config import Retention
from tasks.core.schemas import (
    ASK_REPLIES,
    CLAIMS,
    FEEDBACK,
    GRADES,
    NIGHTLY_SLICES,
    PAIRS,
    QUARANTINE,
    REDACTIONS,
    REVIEWS,
    TRACE_SCORES,
    TRACES,
    VERDICTS,
    Table,
)
from tasks.run.redacted import MARK, all_columns, names, naming, redacted_traces
from tasks.run.result import StageResult
from tasks.store.lake import PENDING, Lake, Part, empty, frame, from_rows

EXPIRED, DELETED = "expired", "deleted"
# Folders left by runs that were killed or spent their budget during claim extraction. Such work is done again.
LEFTOVERS = ("staging", "scratch", "unfinished")
EXPLAINED = (VERDICTS, GRADES, ASK_REPLIES)  # tables with explanations and replies of models
# Tables that each stage writes.
TABLES = {
    "texts": (TRACES,),
    "claims": (CLAIMS,),
    "questions": (TRACE_SCORES,),
    "slices": (NIGHTLY_SLICES,),
    "comments": (FEEDBACK, REVIEWS),
    "explanations": EXPLAINED,
    "quarantine": (QUARANTINE,),
}
NO_HASH = "redacted"  # replaces a deleted trace's content hash, which could confirm a guess of the text

NULL, BLANK = pl.lit(None, pl.String), pl.lit("")
CLAIM_TEXTS = ("text", "context", "hypothesis")
# Columns with text in each table, and their replacements.
REDACTED = {
    TRACES: {
        "question": BLANK,
        "answer": BLANK,
        "chunks": pl.col("chunks").list.eval(pl.element().struct.with_fields(title=NULL, text=BLANK)),
        "reference_answer": NULL,
        "session": NULL,
        "tags": pl.lit(pl.Series([[]], dtype=frame(empty(TRACES)).schema["tags"])),
    },
    CLAIMS: {
        **dict.fromkeys(CLAIM_TEXTS, BLANK),
        "dangling_citations": pl.col("dangling_citations").list.eval(pl.element().str.head(0)),
    },
    TRACE_SCORES: {"question_id": NULL, "session_id": NULL},  # a hash could confirm a guess of the question or session
    FEEDBACK: {"comment": NULL},
    REVIEWS: {"comment": NULL},
    **{table: {"explanation": NULL, "raw": NULL} for table in EXPLAINED},
    QUARANTINE: {"raw": BLANK},
}
HAS_CLAIM_TEXT = pl.any_horizontal(pl.col(CLAIM_TEXTS) != "")
HAS_QUESTION = pl.col("question_id").is_not_null()


@dataclass(frozen=True, slots=True)
class Due:
    """Texts and explanations to redact.

    Attributes:
        texts: Redact the texts of traces from before this day; None to keep them all. The other days work alike.
        explanations: Redact the explanations of verdicts, grades and replies from before this day.
        refused: Redact the original lines of rows that were refused before this day.
        traces: Ids of traces in open requests.
    """

    texts: date | None = None
    explanations: date | None = None
    refused: date | None = None
    traces: frozenset[str] = frozenset()


def request(lake: Lake, trace_ids: Iterable[str], reason: str | None, now: datetime) -> None:
    """Record a request to redact the texts of these traces. From now on, the texts are not stored again."""
    for trace_id in trace_ids:
        name = _name(trace_id)
        part = lake.find(REDACTIONS, name)
        if part is None or part.frame(["redacted_at"])["redacted_at"].null_count() == 0:
            row = {"trace_id": trace_id, "requested_at": now, "reason": reason, "redacted_at": None}
            lake.write(REDACTIONS, name, from_rows([row], REDACTIONS))


def due(lake: Lake, settings: Retention, today: date) -> Due:
    """Return what to redact by these settings and the open requests. Settings without days leave only the requests."""
    texts, explanations, refused = (
        today - timedelta(days=days) if days is not None else None
        for days in (settings.text_days, settings.explanations_days, settings.refused_days)
    )
    limits = [day for day in (texts, explanations) if day is not None]
    requests = [part.frame(["trace_id", "redacted_at"]) for part in lake.parts(REDACTIONS)]
    wanted = frozenset(i for rows in requests for i in rows.filter(pl.col("redacted_at").is_null())["trace_id"])
    return Due(texts, max(limits, default=None), refused, wanted)


def redact(lake: Lake, what: Due, now: datetime) -> list[StageResult]:
    """Redact what is due in the lake.

    The caller must hold the locks of the lake, or pass an overlay for a dry run.

    Returns:
        One result per stage in `TABLES`, with the number of rows redacted in this run. For `questions`, these are
        scores that lost the hashes of their question and session. For `slices`, these are rows dropped because no
        trace of the night has their tag any more.
    """
    texts = [part for part in lake.parts(TRACES) if _has_due(part, what)]
    nights = {part.date for part in texts}
    if nights or what.traces:
        _note(lake, nights)
    requests, forgotten = sorted(_requests(lake, what.traces)), sorted(what.traces)
    done = [
        StageResult("texts", computed=sum(_redact_traces(lake, part, what, now) for part in texts)),
        StageResult("claims", computed=_redact_made(lake, CLAIMS, HAS_CLAIM_TEXT, what)),
        StageResult("questions", computed=_redact_made(lake, TRACE_SCORES, HAS_QUESTION, what)),
        StageResult("slices", computed=_drop_slices(lake, what)),
        StageResult(
            "comments",
            computed=_redact_rows(lake, FEEDBACK, "trace_id", forgotten, what.texts)
            + _redact_rows(lake, REVIEWS, "trace_id", forgotten, what.texts),
        ),
        StageResult(
            "explanations",
            computed=_redact_rows(lake, VERDICTS, "request_key", requests, what.explanations)
            + _redact_rows(lake, GRADES, "trace_id", forgotten, what.explanations)
            + _redact_rows(lake, ASK_REPLIES, "trace_id", forgotten, what.explanations),
        ),
        StageResult("quarantine", computed=_redact_quarantine(lake, what)),
    ]
    for name in LEFTOVERS if lake.overlay is None else ():
        for left in lake.home.glob(f".{name}*"):
            shutil.rmtree(left, ignore_errors=True)
    return done


def pending(lake: Lake) -> list[date] | None:
    """Return the nights whose pages and tables may still show redacted texts; None if no redaction is in progress."""
    note = lake.note(PENDING)
    return None if note is None else [date.fromisoformat(d) for d in json.loads(note)]


def finish(lake: Lake, what: Due, now: datetime) -> None:
    """Record that everything is redacted, in the warehouse and the report too."""
    for trace_id in sorted(what.traces):
        part = lake.find(REDACTIONS, _name(trace_id))
        assert part is not None  # noqa: S101 - `due` read the request from this part
        lake.write(REDACTIONS, part.name, part.frame().with_columns(redacted_at=pl.lit(now)).to_arrow())
    lake.write_note(PENDING, None)


def held(lake: Lake, trace_ids: Collection[str]) -> set[str]:
    """Return which of these traces are in the lake."""
    wanted = pl.col("trace_id").is_in(list(trace_ids))
    return {i for part in lake.parts(TRACES) for i in part.frame(["trace_id"]).filter(wanted)["trace_id"]}


def drop_pages(report: Path, nights: Collection[date]) -> None:
    """Delete the pages of these nights, including leftovers of killed runs."""
    for night in nights:
        for place in (report / str(night), *report.glob(f".{night}.*")):
            shutil.rmtree(place, ignore_errors=True)


def _name(trace_id: str) -> str:
    return keys.key("redaction", trace_id)


def _expired(part: Part, limit: date | None) -> bool:
    return limit is not None and part.date < limit


def _note(lake: Lake, nights: Collection[date]) -> None:
    lake.write_note(PENDING, json.dumps(sorted(map(str, {*(pending(lake) or []), *nights}))).encode())


def _rewrite(
    lake: Lake,
    table: Table,
    part: Part,
    theirs: pl.Expr,
    also: dict[str, pl.Expr] | None = None,
    inputs: str = "",
    written_ns: int | None = None,
) -> None:
    """Rewrite a part. In the selected rows, replace the texts (`REDACTED`) and the columns in `also`."""
    values = {**REDACTED[table], **(also or {})}
    seen = part.stamp()
    rows = frame(all_columns(part, table)).with_columns(
        pl.when(theirs).then(value).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )
    token = inputs or part.inputs()
    lake.write(table, part.name, rows.to_arrow(), *part.partition, inputs=token, replaces=seen, written_ns=written_ns)


def _due_traces(part: Part, what: Due) -> pl.Expr:
    """Select the rows of a part of `traces` to redact."""
    mark, expired = pl.col("text_redacted"), pl.lit(_expired(part, what.texts))
    return (
        pl.when(pl.col("trace_id").is_in(what.traces))
        .then(mark.ne_missing(pl.lit(DELETED)))
        .otherwise(expired & mark.is_null())
    )


def _has_due(part: Part, what: Due) -> bool:
    if not (_expired(part, what.texts) or what.traces):
        return False
    columns = ["trace_id", "text_redacted"]
    rows = pl.concat([frame(empty(TRACES)).select(columns), part.frame(columns)], how="diagonal")
    return bool(rows.select(_due_traces(part, what).any()).item())


def _redact_traces(lake: Lake, part: Part, what: Due, now: datetime) -> int:
    theirs, deleted = _due_traces(part, what), pl.col("trace_id").is_in(what.traces)
    marks = {
        "content_hash": pl.when(deleted).then(pl.lit(NO_HASH)).otherwise(pl.col("content_hash")),
        MARK: pl.lit(now),
        "text_redacted": pl.when(deleted).then(pl.lit(DELETED)).otherwise(pl.lit(EXPIRED)),
    }
    found = int(frame(all_columns(part, TRACES)).select(theirs.sum()).item())
    _rewrite(lake, TRACES, part, theirs, marks, inputs="texts redacted")
    return found


def _redact_made(lake: Lake, table: Table, has_text: pl.Expr, what: Due) -> int:
    """Redact rows derived from due traces, for all extractors and recipes. Return the number of rows redacted now."""
    found = 0
    versions = lake.values(table)
    for part in lake.parts(TRACES):
        gone = pl.Series("trace_id", redacted_traces(part), dtype=pl.String)  # redacted now or by a killed run
        if not _expired(part, what.texts):
            gone = gone.filter(gone.is_in(what.traces))
        theirs = pl.col("trace_id").is_in(gone.implode())
        for version in versions if len(gone) else ():
            made = lake.find(table, part.name, version, part.partition[-1])
            if made and (n := int(frame(all_columns(made, table)).select((theirs & has_text).sum()).item())):
                _note(lake, {part.date})  # a killed run redacted the traces, and a later run cleared its note
                _rewrite(lake, table, made, theirs)
                found += n
    return found


def _drop_slices(lake: Lake, what: Due) -> int:
    """Drop rows of `nightly_slices` for tag values that no trace of the night has any more. Return the number dropped.

    Tags count as texts. The combined row of rare values has a null value and is kept.
    """
    parts = defaultdict(list)
    for part in lake.parts(TRACES):
        if _expired(part, what.texts) or what.traces:
            parts[part.date].append(part)
    days = {day: its for day, its in parts.items() if any(len(redacted_traces(part)) for part in its)}
    found = 0
    for part in lake.parts(NIGHTLY_SLICES) if days else ():
        if part.date not in days:
            continue
        tags = (row for p in days[part.date] for row in p.read(["tags"])["tags"].to_pylist())
        there = {(f"tags.{name}", value) for row in tags for name, value in row or ()}
        rows = frame(all_columns(part, NIGHTLY_SLICES))
        kept = rows.filter([
            not name.startswith("tags.") or value is None or (name, value) in there
            for name, value in rows.select("slice", "value").iter_rows()
        ])  # fmt: skip
        if n := len(rows) - len(kept):
            _note(lake, {part.date})
            lake.write(NIGHTLY_SLICES, part.name, kept.to_arrow(), *part.partition, inputs=part.inputs())
            found += n
    return found


def _redact_rows(lake: Lake, table: Table, column: str, wanted: Collection[str], limit: date | None) -> int:
    """Redact rows from before the limit, and rows with one of the wanted values in a column."""
    found = 0
    texts = list(REDACTED[table])
    by_day = "date" in table.partition  # otherwise each row has its own date
    expired = pl.lit(False) if limit is None else pl.col("date") < limit
    for part in lake.parts(table):
        if wanted or not by_day or _expired(part, limit):
            has_text = pl.any_horizontal(pl.col(texts).is_not_null())
            theirs = has_text & (expired | pl.col(column).is_in(wanted))
            rows = frame(all_columns(part, table)).filter(theirs)
            if n := rows.height:
                _note(lake, rows["date"].unique())
                _rewrite(lake, table, part, theirs)
                found += n
    return found


def _requests(lake: Lake, traces: Collection[str]) -> set[str]:
    """Return the request keys of all judgments of these traces, for all recipes."""
    parts = lake.parts(PAIRS) if traces else []
    found = [part.frame(["trace_id", "request_key"]).filter(pl.col("trace_id").is_in(traces)) for part in parts]
    return {key for rows in found for key in rows["request_key"]}


def _redact_quarantine(lake: Lake, what: Due) -> int:
    """Redact refused rows that are too old, or that contain the id of a requested trace."""
    found = 0
    ids = naming(what.traces)
    for part in lake.parts(QUARANTINE):
        refused_ns = part.written_ns()
        written = datetime.fromtimestamp(refused_ns / 1e9, UTC).date()  # a row may have no date or a future one
        theirs = pl.col("trace_id").is_in(what.traces)
        if what.texts is not None:
            theirs |= pl.min_horizontal("date", pl.lit(written)) < what.texts
        if what.refused is not None:
            theirs |= pl.lit(written < what.refused)
        if ids:
            theirs |= pl.col("raw").map_elements(lambda raw: names(raw, ids), pl.Boolean)
        theirs &= pl.col("raw") != ""
        if n := int(frame(all_columns(part, QUARANTINE)).select(theirs.sum()).item()):
            _note(lake, ())
            _rewrite(lake, QUARANTINE, part, theirs, written_ns=refused_ns)  # keep the time of refusal
            found += n
    return found
