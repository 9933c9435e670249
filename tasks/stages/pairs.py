"""Pairs: which claim is shown to the judge with which evidence.

First looks show one window of one chunk, for every part of `claims` without a part of `pairs`. Second looks show the
best chunks together, once the first looks have verdicts (see `verdicts.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS, PAIRS
from tasks.stages.context import Context, StageResult, missing_parts
from tasks.stages.evidence import premise, windows
from tasks.store.lake import Part, empty

TRACE_COLUMNS = ["trace_id", "chunks.list.element.chunk_id", "chunks.list.element.text"]
CLAIM_COLUMNS = ["claim_id", "trace_id", "hypothesis", "cited_chunk_ids"]
Window = dict[str, Any]  # {chunk_id, start, end}


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


def pair_table(rows: Iterable[tuple[str, str, str, Sequence[Window], bool, str]]) -> pa.Table:
    """Pairs from tuples of claim_id, trace_id, look, evidence, cited, request_key."""
    names = ["claim_id", "trace_id", "look", "evidence", "cited", "request_key"]
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [[] for _ in names]
    return pa.table({n: pa.array(c, PAIRS.schema.field(n).type) for n, c in zip(names, columns, strict=True)})


def _first_looks(ctx: Context, part: Part) -> tuple[pa.Table, int]:
    """Pairs of one part, and the tokens that ranking the chunks took."""
    pairing = ctx.config.recipe.pairing
    texts = trace_texts(part)
    cut = {t: {c: windows(text, pairing.window_words) for c, text in chunks.items()} for t, chunks in texts.items()}
    claims = claims_of(ctx, part, CLAIM_COLUMNS).to_pylist()
    nearest, tokens = _nearest(ctx, claims, texts, cut) if pairing.kind == "top_k" else ({}, 0)

    def rows() -> Iterable[tuple[str, str, str, Sequence[Window], bool, str]]:
        for claim in claims:
            trace, cited = claim["trace_id"], set(claim["cited_chunk_ids"])
            said = claim["hypothesis"]
            for chunk, spans in cut[trace].items():
                if not (pairing.kind == "per_chunk" or chunk in cited or chunk in nearest.get(claim["claim_id"], ())):
                    continue
                for start, end in spans:
                    shown = [{"chunk_id": chunk, "start": start, "end": end}]
                    key = keys.request_key(premise(shown, texts[trace]), said)
                    yield claim["claim_id"], trace, "single", shown, chunk in cited, key

    return pair_table(rows()), tokens


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


def second_looks(ctx: Context, part: Part, looks: pa.Table) -> pa.Table:
    """Pairs for the joint looks that `sql/second_look.sql` asks for."""
    if not looks.num_rows:
        return pair_table([])
    texts = trace_texts(part)
    claims = {c["claim_id"]: c for c in claims_of(ctx, part, CLAIM_COLUMNS).to_pylist()}

    def rows() -> Iterable[tuple[str, str, str, Sequence[Window], bool, str]]:
        for look in looks.to_pylist():
            claim = claims[look["claim_id"]]
            key = keys.request_key(premise(look["evidence"], texts[look["trace_id"]]), claim["hypothesis"])
            cited = {e["chunk_id"] for e in look["evidence"]} <= set(claim["cited_chunk_ids"])
            yield look["claim_id"], look["trace_id"], look["look"], look["evidence"], cited, key

    return pair_table(rows())


def looks_of(ctx: Context, part: Part) -> list[Part]:
    """The parts of `pairs` that belong to a part of `traces`: first looks, then second ones where they are planned."""
    found = (ctx.lake.find(PAIRS, name, ctx.recipe, part.partition[-1]) for name in (part.name, joint_name(part)))
    return [p for p in found if p]


def joint_name(part: Part) -> str:
    """Name of the part that holds the second looks."""
    return f"{part.name}-joint"
