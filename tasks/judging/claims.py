"""Reads what judging needs from a part of `traces`: the claims of its answers and the texts of its chunks.

Planning and judging a pair read the evidence with the same functions, so a key is always the hash of the texts that the
judge sees.
"""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIMS, PAIRS
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.redacted import unredacted
from tasks.run.scopes import scope
from tasks.run.scopes.scope import ALL, Scope
from tasks.store.lake import Part, empty

Window = tuple[str, int, int]  # of a chunk: its id, first character, one past the last
JOINT_SEPARATOR = "\n\n"
TRACE_COLUMNS = ["trace_id", "chunks.list.element.chunk_id", "chunks.list.element.text"]


def has_claims(ctx: Context, part: Part) -> bool:
    """Whether the answers of a part have been cut. An outage can delay that."""
    return ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1]) is not None


def cut_segments(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """Everything that was cut from the answers of a part, claims and others, without redacted traces."""
    found = ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1])
    if found is None:
        return empty(CLAIMS).select(columns) if columns else empty(CLAIMS)
    rows = unredacted(part, found.read(columns and sorted({*columns, "trace_id"})))
    return rows.select(columns) if columns else rows


def cut_claims(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """The claims of a part, without redacted traces."""
    rows = claims_in(cut_segments(ctx, part, columns and [*columns, *({"kind"} - {*columns})]))
    return rows.select(columns) if columns else rows


def claims_in(segments: pa.Table) -> pa.Table:
    """The rows that are claims."""
    return segments.filter(pc.equal(segments["kind"], "claim"))


def covered_segments(ctx: Context, part: Part) -> pa.Table:
    """Everything that was cut from answers of the traces that are judged under the recipe."""
    return covered(ctx, part, cut_segments(ctx, part))


def covered_claims(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """The claims of the traces that are judged under the recipe."""
    return covered(ctx, part, cut_claims(ctx, part, columns))


def covered(ctx: Context, part: Part, rows: pa.Table) -> pa.Table:
    """The rows of traces for which the single pairs of a part were planned. Rows have a `trace_id`."""
    return within(part, planned_scopes(ctx, part), rows)


def within(part: Part, scopes: Sequence[Scope], rows: pa.Table) -> pa.Table:
    """The rows of traces that any of these scopes covers. Rows have a `trace_id`."""
    if ALL in scopes:
        return rows
    traces = part.read(["trace_id", "app"])
    return rows.filter(pc.is_in(rows["trace_id"], traces.filter(scope.mask(scopes, traces))["trace_id"]))


def planned_scopes(ctx: Context, part: Part) -> Sequence[Scope]:
    """Scopes that the single pairs of a part cover; the context's own scope if none are planned."""
    existing = ctx.lake.find(PAIRS, single_name(part, ctx.judges[0]), ctx.recipe, part.partition[-1])
    return scope.parse(existing.inputs()) if existing else [ctx.scope]


def single_name(part: Part, judge: CascadeJudge) -> str:
    """Name of the part that holds a judge's single pairs."""
    return part.name if judge.stage == 1 else f"{part.name}-stage{judge.stage}"


def trace_texts(part: Part, only: pa.ChunkedArray | None = None) -> dict[str, dict[str, str]]:
    """The texts of a part's chunks, by trace id and chunk id.

    Args:
        only: Ids of the required traces; None for all.
    """
    traces = part.read(TRACE_COLUMNS)
    if only is not None:
        traces = traces.filter(pc.is_in(traces["trace_id"], only))
    rows = pl.DataFrame(unredacted(part, traces)).iter_rows()
    return {trace: {c["chunk_id"]: c["text"] for c in chunks} for trace, chunks in rows}


def passages(evidence: Iterable[Window], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The evidence of one pair, window by window.

    Args:
        texts: Text of each chunk of the trace.
    """
    return tuple(texts[chunk][start:end] for chunk, start, end in evidence)


def premise(shown: Sequence[str]) -> str:
    """Passages joined into one text."""
    return JOINT_SEPARATOR.join(shown)
