"""Pairs: which claim is shown to the judge with which evidence.

Single pairs show one window of one chunk, or packs of windows of all chunks, for every part of `claims` without a part
of `pairs`. Joint pairs show the best chunks together, or the cited ones alone, once the single pairs have verdicts (see
`verdicts.py`). Each judge of a cascade has parts of its own: the first sees all claims, the others some
(`escalate.py`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.config import Pairing
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS, EVIDENCE, PAIRS
from tasks.judging.evidence import Window, passages
from tasks.run import scope
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted, with_redacted
from tasks.run.result import StageResult
from tasks.run.scope import ALL, Scope
from tasks.store.lake import Part, empty
from tasks.text.windows import windows, word_count

TRACE_COLUMNS = ["trace_id", "chunks.list.element.chunk_id", "chunks.list.element.text"]
CLAIM_COLUMNS = ["claim_id", "trace_id", "hypothesis", "cited_chunk_ids", "language"]


def plan_pairs(ctx: Context) -> StageResult:
    """Single pairs of the first judge at the claims of the run's days; returns pairs computed and reused.

    The newest days come first; between two parts, the budget may end it.
    """
    parts = [part for part in trace_parts(ctx) if has_claims(ctx, part)]
    computed = reused = tokens = 0
    with tracked(ctx.progress, "pairs", len(parts)):
        for part in sorted(parts, key=attrgetter("date"), reverse=True):
            if ctx.budget.over():
                break
            existing = ctx.lake.find(PAIRS, first_name(part, ctx.judges[0]), ctx.recipe, part.partition[-1])
            before = existing.inputs() if existing else None
            while scopes := _wider(ctx, part, before):
                rows, read = single_pairs(ctx, ctx.judges[0], part, _claims_in(ctx, part, scopes))
                tokens += read
                where = (ctx.recipe, part.partition[-1])
                rows = with_redacted(ctx.lake, PAIRS, part.name, rows, part, *where)
                with ctx.lake.alone():
                    existing = ctx.lake.find(PAIRS, part.name, *where)
                    planned = existing.inputs() if existing else None
                    if planned == before:
                        ctx.lake.write(PAIRS, part.name, rows, *where, inputs=scope.token(scopes))
                        computed += rows.num_rows
                        break
                before = planned  # another writer has planned it meanwhile, for other traces perhaps
            else:
                reused += existing.rows() if existing else 0
            ctx.progress.advance()
    return StageResult("pairs", computed=computed, reused=reused, tokens_in=tokens)


def cut_parts(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """All that was cut from the answers of a part of `traces`, but for those of traces whose text is gone."""
    found = ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1])
    if found is None:
        return empty(CLAIMS).select(columns) if columns else empty(CLAIMS)
    rows = unredacted(part, found.read(columns and sorted({*columns, "trace_id"})))
    return rows.select(columns) if columns else rows


def cut_claims(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """The claims among it."""
    rows = claims_in(cut_parts(ctx, part, columns and [*columns, *({"kind"} - {*columns})]))
    return rows.select(columns) if columns else rows


def claims_in(cut: pa.Table) -> pa.Table:
    """The claims among what was cut from answers."""
    return cut.filter(pc.equal(cut["kind"], "claim"))


def parts_of(ctx: Context, part: Part) -> pa.Table:
    """All that was cut from the answers of the traces that are judged under the recipe."""
    return covered(ctx, part, cut_parts(ctx, part))


def claims_of(ctx: Context, part: Part, columns: list[str] | None = None) -> pa.Table:
    """The claims of the traces that are judged under the recipe."""
    return covered(ctx, part, cut_claims(ctx, part, columns))


def covered(ctx: Context, part: Part, rows: pa.Table) -> pa.Table:
    """Of rows with a `trace_id`, those of the traces that the single pairs at a part were planned for."""
    scopes = planned_for(ctx, part)
    if scopes == [ALL]:
        return rows
    traces = part.read(["trace_id", "app"])
    return rows.filter(pc.is_in(rows["trace_id"], traces.filter(scope.mask(scopes, traces))["trace_id"]))


def planned_for(ctx: Context, part: Part) -> Sequence[Scope]:
    """Scopes that the single pairs at a part cover; the context's own where there are none yet."""
    existing = ctx.lake.find(PAIRS, first_name(part, ctx.judges[0]), ctx.recipe, part.partition[-1])
    return scope.parse(existing.inputs()) if existing else [ctx.scope]


def _wider(ctx: Context, part: Part, planned: str | None) -> list[Scope] | None:
    """What a part of pairs has to cover, if that is more than it does.

    Args:
        planned: Its token; None where it is not there.
    """
    before = [] if planned is None else scope.parse(planned)
    if ALL in before or ctx.scope in before:
        return None
    traces = part.read(["trace_id", "app"])
    wanted = [*before, ctx.scope]
    if before and scope.mask(wanted, traces) == scope.mask(before, traces):
        return None
    return wanted


def _claims_in(ctx: Context, part: Part, scopes: Sequence[Scope]) -> set[str] | None:
    """Ids of the claims of these scopes; None for all."""
    if ALL in scopes:
        return None
    traces = part.read(["trace_id", "app"])
    claims = cut_claims(ctx, part, ["claim_id", "trace_id"])
    inside = pc.is_in(claims["trace_id"], traces.filter(scope.mask(scopes, traces))["trace_id"])
    return set(claims.filter(inside)["claim_id"].to_pylist())


def has_claims(ctx: Context, part: Part) -> bool:
    """Whether the answers of a part of `traces` have been cut; an outage may have kept them from it."""
    return ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1]) is not None


def trace_texts(part: Part) -> dict[str, dict[str, str]]:
    """Per trace of a part: the text of each chunk."""
    table = unredacted(part, part.read(TRACE_COLUMNS))
    return {
        trace: {c["chunk_id"]: c["text"] for c in chunks}
        for trace, chunks in zip(table["trace_id"].to_pylist(), table["chunks"].to_pylist(), strict=True)
    }


@dataclass(slots=True)
class Looks:
    """Pairs of one judge in the making, column by column: there are dozens a trace."""

    stage: int
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
            "stage": pa.repeat(pa.scalar(self.stage, pa.int32()), len(self.claim_id)),
            "pair_kind": pa.array(self.look, pa.string()),
            "evidence": pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), shown),
            "cited": pa.array(self.cited, pa.bool_()),
            "request_key": pa.array(self.request_key, pa.string()),
        })  # fmt: skip


def single_pairs(
    ctx: Context, member: CascadeJudge, part: Part, only: Collection[str] | None = None
) -> tuple[pa.Table, int]:
    """Pairs of one part for one judge, looks at the same evidence side by side, and the tokens that ranking took.

    Claims in languages that it does not read have none.

    Args:
        only: Ids of the claims that it sees; None for all.
    """
    pairing = member.pairing
    texts = trace_texts(part)
    cut = {t: {c: windows(text, pairing.window_words) for c, text in chunks.items()} for t, chunks in texts.items()}
    reads = member.languages
    claims = [
        claim
        for claim in cut_claims(ctx, part, CLAIM_COLUMNS).to_pylist()
        if (only is None or claim["claim_id"] in only)
        and (reads is None or claim["language"] is None or claim["language"] in reads)
    ]
    nearest, tokens = _nearest(ctx, pairing.k, claims, texts, cut) if pairing.kind == "top_k" else ({}, 0)
    looks = Looks(member.stage)
    for trace, its in groupby(claims, key=itemgetter("trace_id")):
        here = [(c["claim_id"], c["hypothesis"], set(c["cited_chunk_ids"])) for c in its]
        if pairing.kind == "cited_together":
            for claim, said, cited in here:
                shown_to_it = [(c, start, end) for c, spans in cut[trace].items() if c in cited for start, end in spans]
                for evidence in packs(shown_to_it, texts[trace], pairing.pack_words):
                    (key,) = keys.request_keys(passages(evidence, texts[trace]), [said])
                    for window in evidence:
                        looks.show(*window)
                    looks.add(claim, trace, "single" if len(evidence) == 1 else "pack", key, cited=True)
            continue
        for evidence in _bodies(pairing, texts[trace], cut[trace]):
            chunks = {chunk for chunk, _, _ in evidence}
            shown = [
                (claim, said, chunks <= cited)
                for claim, said, cited in here
                if pairing.kind in ("per_chunk", "all_chunks") or chunks <= cited or chunks <= nearest.get(claim, set())
            ]
            found = keys.request_keys(passages(evidence, texts[trace]), [said for _, said, _ in shown])
            for (claim, _, cites), key in zip(shown, found, strict=True):
                for window in evidence:
                    looks.show(*window)
                looks.add(claim, trace, "single" if len(evidence) == 1 else "pack", key, cited=cites)
    return looks.table(), tokens


def _bodies(
    pairing: Pairing, texts: Mapping[str, str], cut: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[list[Window]]:
    """What is shown at once of a trace's chunks: window by window, or as many windows as make a pack."""
    all_windows = [(chunk, start, end) for chunk, spans in cut.items() for start, end in spans]
    if pairing.kind == "all_chunks":
        yield from packs(all_windows, texts, pairing.pack_words)
    else:
        yield from ([window] for window in all_windows)


def packs(evidence: Iterable[Window], texts: Mapping[str, str], pack_words: int) -> Iterator[list[Window]]:
    """Windows in order, in packs of at most so many words; a window that is longer by itself is a pack."""
    pack: list[Window] = []
    size = 0.0
    for chunk, start, end in evidence:
        more = word_count(texts[chunk][start:end])
        if pack and size + more > pack_words:
            yield pack
            pack, size = [], 0.0
        pack.append((chunk, start, end))
        size += more
    if pack:
        yield pack


def _nearest(
    ctx: Context,
    k: int,
    claims: Sequence[Mapping[str, Any]],
    texts: Mapping[str, Mapping[str, str]],
    cut: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]],
) -> tuple[dict[str, set[str]], int]:
    """Per claim the k chunks with the nearest window by cosine; ties go to the chunk that comes first."""
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


def joint_pairs(ctx: Context, member: CascadeJudge, part: Part, asked: pa.Table) -> pa.Table:
    """Pairs for the looks that `sql/judging/joint_pairs.sql` or `sql/judging/left_out_pairs.sql` asks for."""
    looks = Looks(member.stage)
    if asked.num_rows:
        texts = trace_texts(part)
        claims = {c["claim_id"]: c for c in cut_claims(ctx, part, CLAIM_COLUMNS).to_pylist()}
        shown: set[tuple[str, frozenset[Window]]] = set()
        for row in unredacted(part, asked).to_pylist():
            claim, chunks = claims[row["claim_id"]], texts[row["trace_id"]]
            evidence = [(e["chunk_id"], e["start"], e["end"]) for e in row["evidence"]]
            if not member.pairing.packs or row["pair_kind"] == "joint":
                most = member.pairing.joint_words
                if row["pair_kind"] == "joint" and not most:
                    continue
                evidence = list(_fitting(evidence, chunks, row["least"], most))
            # Where the best windows are those of the cited chunks, one look serves both.
            if (row["claim_id"], frozenset(evidence)) in shown:
                continue
            shown.add((row["claim_id"], frozenset(evidence)))
            for body in _again(member.pairing, row["pair_kind"], evidence, chunks):
                (key,) = keys.request_keys(passages(body, chunks), [claim["hypothesis"]])
                cited = {chunk for chunk, _, _ in body} <= set(claim["cited_chunk_ids"])
                for window in body:
                    looks.show(*window)
                looks.add(row["claim_id"], row["trace_id"], row["pair_kind"], key, cited=cited)
    return looks.table()


def _fitting(evidence: Iterable[Window], texts: Mapping[str, str], least: int, most: int) -> Iterator[Window]:
    """The first `least` windows, and after them those that fit into `most` words together with what was taken."""
    size = 0.0
    for number, (chunk, start, end) in enumerate(evidence):
        more = word_count(texts[chunk][start:end])
        if number < least or size + more <= most:
            size += more
            yield chunk, start, end


def _again(pairing: Pairing, look: str, evidence: list[Window], texts: Mapping[str, str]) -> Iterable[list[Window]]:
    """Evidence of a joint pair. All that a claim cites is shown as it was shown at first: in order, and in packs."""
    if look != "joint_cited" or not pairing.packs:
        return [evidence]
    order = {chunk: i for i, chunk in enumerate(texts)}
    return packs(sorted(evidence, key=lambda w: (order[w[0]], w[1])), texts, pairing.pack_words)


def pair_parts(ctx: Context, part: Part, member: CascadeJudge) -> list[Part]:
    """A judge's parts of `pairs` for a part of `traces`: single pairs, then the others where they are planned."""
    names = (first_name(part, member), joint_name(part, member), left_out_name(part, member))
    found = (ctx.lake.find(PAIRS, name, ctx.recipe, part.partition[-1]) for name in names)
    return [p for p in found if p]


def first_name(part: Part, member: CascadeJudge) -> str:
    """Name of the part that holds a judge's single pairs."""
    return part.name if member.stage == 1 else f"{part.name}-stage{member.stage}"


def joint_name(part: Part, member: CascadeJudge) -> str:
    """Name of the part that holds its joint pairs."""
    return f"{first_name(part, member)}-joint"


def left_out_name(part: Part, member: CascadeJudge) -> str:
    """Name of the part that holds its looks at all but one of the chunks that a claim cites."""
    return f"{first_name(part, member)}-without"
