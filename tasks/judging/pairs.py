"""Pairs: which claim the judge sees with which evidence.

A single pair shows one window of one chunk, or a pack of windows of all chunks. Single pairs are planned for every part
of `claims` without a part of `pairs`. Joint pairs show the best chunks together, or only the cited ones; they are
planned once the single pairs have verdicts (`verdicts.py`). Each judge of a cascade has its own parts: the first judge
sees all claims, the others only some (`escalate.py`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.config import Pairing
from tasks.core.errors import ChangedError
from tasks.core.schemas import EVIDENCE, PAIRS
from tasks.judging.claims import Window, cut_claims, has_claims, passages, single_name, trace_texts, within
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.part_work import by_part
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted, with_redacted
from tasks.run.result import StageResult
from tasks.run.scopes import scope
from tasks.run.scopes.scope import ALL, Scope
from tasks.store.lake import Part
from tasks.text.windows import windows, word_count

CLAIM_COLUMNS = ["claim_id", "trace_id", "hypothesis", "cited_chunk_ids", "language"]


def plan_pairs(ctx: Context) -> StageResult:
    """Plan the first judge's single pairs for the claims of the run's days; returns pairs computed and reused.

    The newest days come first. The budget may end the stage between two parts.
    """
    todo: list[Part] = []
    reused = 0
    for part in trace_parts(ctx):
        existing = ctx.lake.find(PAIRS, part.name, ctx.recipe, part.partition[-1])
        if existing and not _wider(ctx, part, existing):
            reused += existing.rows()
        elif has_claims(ctx, part):
            todo.append(part)
    todo.sort(key=attrgetter("date"), reverse=True)
    return by_part(ctx, todo, _plan_part, StageResult("pairs", reused=reused), spends=False)


def _plan_part(ctx: Context, part: Part) -> StageResult:
    where = (ctx.recipe, part.partition[-1])
    tokens = 0
    while True:
        existing = ctx.lake.find(PAIRS, part.name, *where)
        scopes = _wider(ctx, part, existing)
        if not scopes:
            return StageResult("pairs", tokens_in=tokens)
        seen = existing.stamp() if existing else None
        rows, read = single_pairs(ctx, ctx.judges[0], part, _claims_within(ctx, part, scopes))
        tokens += read
        rows = with_redacted(ctx.lake, PAIRS, part.name, rows, part, *where)
        # Another writer may have planned it since, perhaps for other traces.
        with suppress(ChangedError):
            token = scope.token(scopes)
            ctx.lake.write(PAIRS, part.name, rows, *where, inputs=token, once=seen is None, replaces=seen)
            return StageResult("pairs", computed=rows.num_rows, tokens_in=tokens)


def _wider(ctx: Context, part: Part, existing: Part | None) -> list[Scope] | None:
    """The scopes for which a part of pairs must be planned; None if it covers the context's scope.

    Args:
        existing: The part of pairs; None if there is none.
    """
    before = [] if existing is None else scope.parse(existing.inputs())
    if ALL in before or ctx.scope in before:
        return None
    traces = part.read(["trace_id", "app"])
    wanted = [*before, ctx.scope]
    if before and scope.mask(wanted, traces) == scope.mask(before, traces):
        return None
    return wanted


def _claims_within(ctx: Context, part: Part, scopes: Sequence[Scope]) -> set[str] | None:
    """Ids of the claims in these scopes; None for all claims."""
    if ALL in scopes:
        return None
    return set(within(part, scopes, cut_claims(ctx, part, ["claim_id", "trace_id"]))["claim_id"].to_pylist())


@dataclass(slots=True)
class PairRows:
    """Builds the pairs of one judge column by column, since a trace has dozens of them."""

    stage: int
    claim_id: list[str] = field(default_factory=list)
    trace_id: list[str] = field(default_factory=list)
    pair_kind: list[str] = field(default_factory=list)
    cited: list[bool] = field(default_factory=list)
    request_key: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])
    windows: list[Window] = field(default_factory=list)

    def add(
        self, claim_id: str, trace_id: str, kind: str | None, evidence: Sequence[Window], key: str, *, cited: bool
    ) -> None:
        """Adds a pair.

        Args:
            kind: None for a single pair; it becomes a pack if it shows several windows.
        """
        self.claim_id.append(claim_id)
        self.trace_id.append(trace_id)
        self.pair_kind.append(kind or ("single" if len(evidence) == 1 else "pack"))
        self.cited.append(cited)
        self.request_key.append(key)
        self.windows += evidence
        self.offsets.append(len(self.windows))

    def table(self) -> pa.Table:
        """The pairs, without the partition columns."""
        columns = zip(*self.windows, strict=True) if self.windows else ((), (), ())
        shown = [pa.array(column, t.type) for column, t in zip(columns, EVIDENCE, strict=True)]
        return pa.table({
            "claim_id": pa.array(self.claim_id, pa.string()),
            "trace_id": pa.array(self.trace_id, pa.string()),
            "stage": pa.repeat(pa.scalar(self.stage, pa.int32()), len(self.claim_id)),
            "pair_kind": pa.array(self.pair_kind, pa.string()),
            "evidence": pa.ListArray.from_arrays(
                pa.array(self.offsets, pa.int32()), pa.StructArray.from_arrays(shown, fields=list(EVIDENCE))
            ),
            "cited": pa.array(self.cited, pa.bool_()),
            "request_key": pa.array(self.request_key, pa.string()),
        })  # fmt: skip


def single_pairs(
    ctx: Context, judge: CascadeJudge, part: Part, only: Collection[str] | None = None
) -> tuple[pa.Table, int]:
    """The single pairs of a part for one judge, ordered by evidence, and the tokens read to rank chunks.

    Claims in languages that the judge does not read have no pairs.

    Args:
        only: Ids of the claims that the judge sees; None for all.
    """
    pairing = judge.pairing
    texts = trace_texts(part)
    cut = {t: {c: windows(text, pairing.window_words) for c, text in chunks.items()} for t, chunks in texts.items()}
    claims = pl.DataFrame(cut_claims(ctx, part, CLAIM_COLUMNS))
    if only is not None:
        claims = claims.filter(pl.col("claim_id").is_in(only))
    if judge.languages is not None:
        claims = claims.filter(pl.col("language").is_null() | pl.col("language").is_in(judge.languages))
    rows = claims.rows(named=True)
    nearest, tokens = _nearest(ctx, pairing.k, rows, texts, cut) if pairing.kind == "top_k" else ({}, 0)
    pairs = PairRows(judge.stage)
    for trace, its in groupby(rows, key=itemgetter("trace_id")):
        here = [(c["claim_id"], c["hypothesis"], set(c["cited_chunk_ids"])) for c in its]
        all_windows = [(chunk, start, end) for chunk, spans in cut[trace].items() for start, end in spans]
        if pairing.kind == "cited_together":
            for claim, hypothesis, cited in here:
                for evidence in packs((w for w in all_windows if w[0] in cited), texts[trace], pairing.pack_words):
                    (key,) = keys.request_keys(passages(evidence, texts[trace]), [hypothesis])
                    pairs.add(claim, trace, None, evidence, key, cited=True)
            continue
        whole = pairing.kind == "all_chunks"
        for evidence in packs(all_windows, texts[trace], pairing.pack_words) if whole else ([w] for w in all_windows):
            chunks = {chunk for chunk, _, _ in evidence}
            shown = [
                (claim, hypothesis, chunks <= cited)
                for claim, hypothesis, cited in here
                if whole or pairing.kind == "per_chunk" or chunks <= cited or chunks <= nearest.get(claim, set())
            ]
            found = keys.request_keys(passages(evidence, texts[trace]), [hypothesis for _, hypothesis, _ in shown])
            for (claim, _, cites), key in zip(shown, found, strict=True):
                pairs.add(claim, trace, None, evidence, key, cited=cites)
    return pairs.table(), tokens


def packs(evidence: Iterable[Window], texts: Mapping[str, str], pack_words: int) -> Iterator[list[Window]]:
    """Windows in order, in packs of at most `pack_words` words. A longer window is a pack on its own."""
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
    """The k chunks with the nearest window by cosine, for each claim. Ties go to the first chunk."""
    nearest: dict[str, set[str]] = {}
    tokens = 0
    by_trace: dict[str, list[Mapping[str, Any]]] = {}
    for claim in claims:
        by_trace.setdefault(claim["trace_id"], []).append(claim)
    for trace, its in by_trace.items():
        shown = [(c, texts[trace][c][a:b]) for c, spans in cut[trace].items() for a, b in spans]
        embedded = ctx.embedder.embed([*(t for _, t in shown), *(c["hypothesis"] for c in its)])
        tokens += int(embedded.tokens.sum())
        of_windows, of_claims = embedded.vectors[: len(shown)], embedded.vectors[len(shown) :]
        for claim, row in zip(its, np.round(of_claims @ of_windows.T, 4), strict=True):
            best: dict[str, float] = {}
            for (chunk, _), score in zip(shown, row.tolist(), strict=True):
                best[chunk] = max(score, best.get(chunk, -1.0))
            nearest[claim["claim_id"]] = set(sorted(best, key=best.__getitem__, reverse=True)[:k])
    return nearest, tokens


def joint_pairs(ctx: Context, judge: CascadeJudge, part: Part, planned: pa.Table) -> pa.Table:
    """The pairs that `sql/judging/joint_pairs.sql` or `sql/judging/left_out_pairs.sql` plans."""
    pairs = PairRows(judge.stage)
    if planned.num_rows:
        texts = trace_texts(part, planned["trace_id"])
        claims = {c["claim_id"]: c for c in pl.DataFrame(cut_claims(ctx, part, CLAIM_COLUMNS)).iter_rows(named=True)}
        shown: set[tuple[str, frozenset[Window]]] = set()
        for row in pl.DataFrame(unredacted(part, planned)).iter_rows(named=True):
            claim, chunks, kind = claims[row["claim_id"]], texts[row["trace_id"]], row["pair_kind"]
            evidence = [(e["chunk_id"], e["start"], e["end"]) for e in row["evidence"]]
            if not judge.pairing.packs or kind == "joint":
                most = judge.pairing.joint_words
                if kind == "joint" and not most:
                    continue
                evidence = list(_fitting(evidence, chunks, row["least"], most))
            # If the cited chunks have the best windows, one pair serves as both kinds.
            if (row["claim_id"], frozenset(evidence)) in shown:
                continue
            shown.add((row["claim_id"], frozenset(evidence)))
            for pack in _packed(judge.pairing, kind, evidence, chunks):
                (key,) = keys.request_keys(passages(pack, chunks), [claim["hypothesis"]])
                cited = {chunk for chunk, _, _ in pack} <= set(claim["cited_chunk_ids"])
                pairs.add(row["claim_id"], row["trace_id"], kind, pack, key, cited=cited)
    return pairs.table()


def _fitting(evidence: Iterable[Window], texts: Mapping[str, str], least: int, most: int) -> Iterator[Window]:
    """The first `least` windows, then each further window while the total stays within `most` words."""
    size = 0.0
    for number, (chunk, start, end) in enumerate(evidence):
        more = word_count(texts[chunk][start:end])
        if number < least or size + more <= most:
            size += more
            yield chunk, start, end


def _packed(pairing: Pairing, kind: str, evidence: list[Window], texts: Mapping[str, str]) -> Iterable[list[Window]]:
    """Evidence of joint pairs. All cited chunks together are shown as in single pairs: in order, and in packs."""
    if kind != "joint_cited" or not pairing.packs:
        return [evidence]
    order = {chunk: i for i, chunk in enumerate(texts)}
    return packs(sorted(evidence, key=lambda w: (order[w[0]], w[1])), texts, pairing.pack_words)


def planned_part(ctx: Context, part: Part, name: str, state: str, rows: Callable[[], pa.Table]) -> Part:
    """A part of further pairs. It is written if it does not exist, and again if its token has changed.

    Args:
        part: The part of `traces`.
        state: Token of everything that the pairs depend on.
        rows: Returns the pairs.
    """
    where = (ctx.recipe, part.partition[-1])
    existing = ctx.lake.find(PAIRS, name, *where)
    if existing and existing.inputs() == state:
        return existing
    return ctx.lake.write(PAIRS, name, with_redacted(ctx.lake, PAIRS, name, rows(), part, *where), *where, inputs=state)


def pair_parts(ctx: Context, part: Part, judge: CascadeJudge) -> list[Part]:
    """A judge's parts of `pairs` for a part of `traces`: single pairs first, then the others if planned."""
    names = (single_name(part, judge), joint_name(part, judge), left_out_name(part, judge))
    found = (ctx.lake.find(PAIRS, name, ctx.recipe, part.partition[-1]) for name in names)
    return [p for p in found if p]


def joint_name(part: Part, judge: CascadeJudge) -> str:
    """Name of the part that holds a judge's joint pairs."""
    return f"{single_name(part, judge)}-joint"


def left_out_name(part: Part, judge: CascadeJudge) -> str:
    """Name of the part that holds a judge's pairs of all cited chunks but one."""
    return f"{single_name(part, judge)}-without"
