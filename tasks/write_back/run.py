"""Send scores to the stores, and record in `write_backs` what the stores have confirmed.

The record is written after each batch. If a run is killed, the next run sends at most one batch again, which changes
nothing in the store. Refused items are noted and tried again by the next run; they don't stop the others. Left out: the
requests of each store.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from tasks.core import keys
from tasks.core.config import WriteBack
from tasks.core.schemas import TRACES, WRITE_BACKS
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.sources import Source
from tasks.sources.langfuse import LangfuseStore
from tasks.sources.langsmith import LangsmithWriteBack
from tasks.sources.mlflow import MlflowStore
from tasks.sources.phoenix import PhoenixStore
from tasks.sources.spans.pull import PulledSource
from tasks.store.lake import Lake, from_rows
from tasks.store.query import Queries
from tasks.write_back import Done, Item, Key, Writer, batched
from tasks.write_back.langfuse import LangfuseWriter
from tasks.write_back.langsmith import LangsmithWriter
from tasks.write_back.mlflow import MlflowWriter
from tasks.write_back.phoenix import PhoenixWriter
from tasks.write_back.plan import FAILED, LEFT_OUT, WITHDRAWN, WRITTEN, Due, due, names_of, planned

STAGE = "write-back"
BATCH = 500  # items per write of the record
NAMED = 3  # traces to name in a note

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A source whose store gets scores."""

    source: PulledSource
    settings: WriteBack

    @property
    def place(self) -> str:
        """The place in the store, as recorded in the table `sources`."""
        return self.source.store.place

    @property
    def chunks(self) -> bool:
        """Whether the store accepts verdicts on chunks."""
        return isinstance(self.source.store, PhoenixStore)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Open the writer of the store.

        Raises:
            UsageError: A variable that should hold a secret is not set.
        """
        store, config = self.source.store, self.source.config
        with self.source.client() as client:
            if isinstance(store, PhoenixStore):
                yield PhoenixWriter(store, client, config.spans)
            elif isinstance(store, MlflowStore):
                yield MlflowWriter(client)
            elif isinstance(store, LangfuseStore):
                yield LangfuseWriter(client)
            else:
                extend = isinstance(self.settings, LangsmithWriteBack) and self.settings.extend_trace_retention
                yield LangsmithWriter(client, extend=extend)


def targets(sources: Sequence[Source]) -> list[Target]:
    """Sources with `write_back`. Of several with the same place and prefix, only the first is used."""
    found: dict[tuple[str, str], Target] = {}
    for source in sources:
        if isinstance(source, PulledSource) and (settings := source.write_back):
            found.setdefault((source.store.place, settings.prefix), Target(source, settings))
    return list(found.values())


def days_of(lake: Lake, target: Target, days: Sequence[date]) -> list[date]:
    """The given days, and earlier days with failed items, in order."""
    failed = {
        part.date
        for part in lake.parts(WRITE_BACKS)
        if part.name == _name(target) and FAILED in part.read(["status"])["status"].to_pylist()
    }
    return sorted({*days, *(day for day in failed if days and day < max(days))})


def preview(ctx: Context, target: Target, days: Sequence[date]) -> Due:
    """Determine what `write_back` would send. Nothing is sent or stored."""
    names = names_of(ctx.lake, target.place)
    with ctx.queries() as queries:
        found = [
            due(items, there)
            for day in days_of(ctx.lake, target, days)
            for there in [_there(ctx.lake, target, day)]
            for items in _planned(ctx, queries, target, names, day)
        ]
    items = tuple(item for one in found for item in one.items)
    return Due(items, *(sum(getattr(one, n) for one in found) for n in ("new", "withdrawn", "same")))


def write_back(ctx: Context, target: Target, days: Sequence[date]) -> StageResult:
    """Send the items of these days that the store lacks.

    Returns:
        As `computed`, items that the store accepted; as `reused`, items that it already had; as `lost`, refused items.

    Raises:
        SourceError: The store can't be reached or does not accept the credentials.
        UsageError: A variable that should hold a secret is not set.
    """
    sent = same = 0
    problems: Counter[str] = Counter()
    refused: dict[str, None] = {}
    names = names_of(ctx.lake, target.place)
    with target.writer() as writer, ctx.queries() as queries:
        for day in days_of(ctx.lake, target, days):
            rows = _there(ctx.lake, target, day)
            for items in _planned(ctx, queries, target, names, day):
                found = due(items, rows)
                same += found.same
                for batch in batched(found.items, BATCH):
                    for done in _recorded(ctx.lake, target, day, rows, writer, batch):
                        sent += done.problem is None
                        if done.problem:
                            problems[done.problem] += 1
                            refused.setdefault(done.item.key.trace_id)
    notes = (_note(target, problems, list(refused)),) if problems else ()
    return StageResult(STAGE, computed=sent, reused=same, lost=problems.total(), notes=notes)


def _planned(ctx: Context, queries: Queries, target: Target, names: Collection[str], day: date) -> Iterator[list[Item]]:
    recipe = target.settings.recipe or ctx.settings.name
    traces = [part for part in ctx.lake.parts(TRACES, str(day)) if part.name.rsplit("-", 1)[0] in names]
    return planned(ctx.lake, queries, traces, target.settings, recipe, day, chunks=target.chunks)


def _recorded(
    lake: Lake, target: Target, day: date, rows: dict[Key, Row], writer: Writer, items: Sequence[Item]
) -> Iterator[Done]:
    """Send a batch and yield the results. The record is written even if an error ends the batch."""
    try:
        for done in writer.write(items):
            rows[done.item.key] = _row(target, day, done, rows.get(done.item.key))
            yield done
    finally:
        lake.write(WRITE_BACKS, _name(target), from_rows(rows.values(), WRITE_BACKS), str(day))


def _row(target: Target, day: date, done: Done, before: Row | None) -> Row:
    """The row of an item. A failed item keeps what the store confirmed before."""
    item, now = done.item, datetime.now(UTC)
    if done.problem:
        old = before or {"date": day, "store": target.place, **item.key._asdict(), "store_id": done.store_id}
        return {**old, "status": FAILED, "problem": done.problem, "tried_at": now}
    there = item.score is not None and not done.left_out
    return {
        "date": day,
        "store": target.place,
        **item.key._asdict(),
        "status": LEFT_OUT if done.left_out else WRITTEN if there else WITHDRAWN,
        "content": item.content,
        "score": item.score if there else None,
        "label": item.label if there else None,
        "recipe": item.about.get("recipe_version"),
        "judge_version": item.about.get("judge_version"),
        "store_id": done.store_id if there else None,
        "problem": None,
        "tried_at": now,
    }


def _there(lake: Lake, target: Target, day: date) -> dict[Key, Row]:
    part = lake.find(WRITE_BACKS, _name(target), str(day))
    rows = part.read().to_pylist() if part else []
    return {Key(row["trace_id"], row["name"], row["chunk_id"]): row for row in rows}


def _name(target: Target) -> str:
    return keys.key(target.place, target.settings.prefix, size=keys.SHORT_HEX)


def _note(target: Target, problems: Counter[str], traces: Sequence[str]) -> str:
    count = problems.total()
    why = ", ".join(f"{problem}: {n:,}" for problem, n in problems.most_common())
    more = f" and {len(traces) - NAMED:,} more" if len(traces) > NAMED else ""
    scores = "1 score was" if count == 1 else f"{count:,} scores were"
    whose = f"of traces {', '.join(traces[:NAMED])}{more}"
    return f"{target.place}: {scores} refused ({why}), {whose}. The next run tries again."
