"""Pairs: which claim is shown to the judge with which evidence.

First looks show one window of one chunk, for every part of `claims` without a part of `pairs`. Second looks show the
best chunks together, once the first looks have verdicts (see `verdicts.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS, EVIDENCE, PAIRS
from tasks.core.windows import windows
from tasks.stages.context import Context, StageResult, missing_parts
from tasks.stages.evidence import premise
from tasks.store.lake import Part, empty

TRACE_COLUMNS = ["trace_id", "chunks.list.element.chunk_id", "chunks.list.element.text"]
CLAIM_COLUMNS = ["claim_id", "trace_id", "hypothesis", "cited_chunk_ids"]


def plan_pairs(ctx: Context) -> StageResult:
    """First looks for the claims of the run's days; returns pairs computed and reused."""
    missing, reused = missing_parts(ctx, PAIRS, ctx.recipe)
    computed = tokens = 0
    with tracked(ctx.progress, "pairs", len(missing)):
        for part in missing:
            rows, read = _first_looks(ctx, part)
            ctx.lake.write(PAIRS, part.name, rows, ctx.recipe, part.partition[-1])
            computed += rows.num_rows
            tokens += read
            ctx.progress.advance()
    return StageResult("pairs", computed=computed, reused=reused, tokens_in=tokens)


def claims_of(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """The claims that were cut from a part of `traces`."""
    found = ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1])
    return found.read(columns) if found else empty(CLAIMS)


def trace_texts(part: Part) -> dict[str, dict[str, str]]:
    """Per trace of a part: the text of each chunk."""
    table = part.read(TRACE_COLUMNS)
    return {
        trace: {c["chunk_id"]: c["text"] for c in chunks}
        for trace, chunks in zip(table["trace_id"].to_pylist(), table["chunks"].to_pylist(), strict=True)
    }


@dataclass(slots=True)
class _Looks:
    """Pairs in the making, column by column: there are dozens a trace."""

    claim_id: list[str] = field(default_factory=list)
    trace_id: list[str] = field(default_factory=list)
    look: list[str] = field(default_factory=list)
    cited: list[bool] = field(default_factory=list)
    request_key: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])
    chunk_id: list[str] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)

    def show(self, chunk_id: str, start: int, end: int) -> None:
        """Another window of the look that is being added."""
        self.chunk_id.append(chunk_id)
        self.start.append(start)
        self.end.append(end)

    def add(self, claim_id: str, trace_id: str, look: str, key: str, *, cited: bool) -> None:
        """A look at the windows shown since the last one."""
        self.claim_id.append(claim_id)
        self.trace_id.append(trace_id)
        self.look.append(look)
        self.cited.append(cited)
        self.request_key.append(key)
        self.offsets.append(len(self.chunk_id))

    def table(self) -> pa.Table:
        """The pairs, without the partition columns."""
        windows_ = [pa.array(v, t.type) for v, t in zip((self.chunk_id, self.start, self.end), EVIDENCE, strict=True)]
        shown = pa.StructArray.from_arrays(windows_, fields=list(EVIDENCE))
        return pa.table({
            "claim_id": pa.array(self.claim_id, pa.string()),
            "trace_id": pa.array(self.trace_id, pa.string()),
            "look": pa.array(self.look, pa.string()),
            "evidence": pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), shown),
            "cited": pa.array(self.cited, pa.bool_()),
            "request_key": pa.array(self.request_key, pa.string()),
        })  # fmt: skip


def _first_looks(ctx: Context, part: Part) -> tuple[pa.Table, int]:
    """Pairs of one part, looks at the same evidence side by side, and the tokens that ranking the chunks took."""
    pairing = ctx.config.recipe.pairing
    texts = trace_texts(part)
    cut = {t: {c: windows(text, pairing.window_words) for c, text in chunks.items()} for t, chunks in texts.items()}
    claims = claims_of(ctx, part, CLAIM_COLUMNS).to_pylist()
    nearest, tokens = _nearest(ctx, claims, texts, cut) if pairing.kind == "top_k" else ({}, 0)
    looks = _Looks()
    for trace, its in groupby(claims, key=itemgetter("trace_id")):
        here = [(c["claim_id"], c["hypothesis"], set(c["cited_chunk_ids"])) for c in its]
        for chunk, spans in cut[trace].items():
            shown = [
                (claim, said, chunk in cited)
                for claim, said, cited in here
                if pairing.kind == "per_chunk" or chunk in cited or chunk in nearest.get(claim, ())
            ]
            for start, end in spans:
                found = keys.request_keys(texts[trace][chunk][start:end], [said for _, said, _ in shown])
                for (claim, _, cited), key in zip(shown, found, strict=True):
                    looks.show(chunk, start, end)
                    looks.add(claim, trace, "single", key, cited=cited)
    return looks.table(), tokens


def _nearest(
    ctx: Context,
    claims: Sequence[Mapping[str, Any]],
    texts: Mapping[str, Mapping[str, str]],
    cut: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]],
) -> tuple[dict[str, set[str]], int]:
    """Per claim the k chunks with the nearest window by cosine; ties go to the chunk that comes first."""
    k = ctx.config.recipe.pairing.k
    nearest: dict[str, set[str]] = {}
    tokens = 0
    by_trace: dict[str, list[Mapping[str, Any]]] = {}
    for claim in claims:
        by_trace.setdefault(claim["trace_id"], []).append(claim)
    for trace, its in by_trace.items():
        shown = [(c, texts[trace][c][a:b]) for c, spans in cut[trace].items() for a, b in spans]
        embedded = ctx.embedder.embed([*(t for _, t in shown), *(c["hypothesis"] for c in its)])
        tokens += int(embedded.tokens.sum())
        windows_, said = embedded.vectors[: len(shown)], embedded.vectors[len(shown) :]
        for claim, row in zip(its, np.round(said @ windows_.T, 4), strict=True):
            best: dict[str, float] = {}
            for (chunk, _), score in zip(shown, row.tolist(), strict=True):
                best[chunk] = max(score, best.get(chunk, -1.0))
            nearest[claim["claim_id"]] = set(sorted(best, key=best.__getitem__, reverse=True)[:k])
    return nearest, tokens


def second_looks(ctx: Context, part: Part, asked: pa.Table) -> pa.Table:
    """Pairs for the joint looks that `sql/second_look.sql` asks for."""
    looks = _Looks()
    if asked.num_rows:
        texts = trace_texts(part)
        claims = {c["claim_id"]: c for c in claims_of(ctx, part, CLAIM_COLUMNS).to_pylist()}
        for row in asked.to_pylist():
            claim = claims[row["claim_id"]]
            shown = [(e["chunk_id"], e["start"], e["end"]) for e in row["evidence"]]
            key = keys.request_key(premise(shown, texts[row["trace_id"]]), claim["hypothesis"])
            cited = {chunk for chunk, _, _ in shown} <= set(claim["cited_chunk_ids"])
            for window in shown:
                looks.show(*window)
            looks.add(row["claim_id"], row["trace_id"], row["look"], key, cited=cited)
    return looks.table()


def looks_of(ctx: Context, part: Part) -> list[Part]:
    """The parts of `pairs` that belong to a part of `traces`: first looks, then second ones where they are planned."""
    found = (ctx.lake.find(PAIRS, name, ctx.recipe, part.partition[-1]) for name in (part.name, joint_name(part)))
    return [p for p in found if p]


def joint_name(part: Part) -> str:
    """Name of the part that holds the second looks."""
    return f"{part.name}-joint"
