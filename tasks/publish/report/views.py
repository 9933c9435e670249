"""One trace as its page shows it: claims in their answer, the judge's looks, chunks with what they decide.

Rows of the tables go in, frozen views come out; rendering stands in `pages.py`, queries in `traces.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.core.grades import GRADES
from tasks.publish.report.evidence import Evidence, evidence
from tasks.publish.report.text import Piece, Span, excerpt, pieces, slug

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Passage:
    """What was seen of a chunk.

    Attributes:
        named: The judge named it as deciding its label.
        claim: Ordinal of the claim of the same answer that was seen in the place of a chunk.
        n: Position of the chunk in its trace, from 0: its anchor; None if the trace has no such chunk.
        excerpt: The passage, shortened.
        start: First character of the passage in the chunk's text.
        end: One past the last.
    """

    n: int | None
    chunk_id: str
    title: str | None
    excerpt: str
    start: int
    end: int
    named: bool = False
    claim: int | None = None


@dataclass(frozen=True, slots=True)
class Cited:
    """A chunk that a claim cites, and the judge's word on it (`unjudged` if there is none).

    Attributes:
        label: None where the judge saw it among others only, and did not name it.
    """

    passage: Passage
    label: str | None
    p_supported: float | None


@dataclass(frozen=True, slots=True)
class Look:
    """One sample of one look of a judge; `label` is None where it failed or was never made.

    Attributes:
        stage: Which judge of the recipe looked, from 1.
    """

    stage: int
    kind: str
    passages: tuple[Passage, ...]
    cited: bool
    sample: int | None
    label: str | None
    failure: str | None
    p_supported: float | None
    p_contradicted: float | None
    explanation: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    Attributes:
        stage: Which judge of the recipe decided, from 1, or which round.
        context: What of the answer or question the judge reads it with; empty where nothing is.
        verdict: Its label, or `na`, `unjudged` or `abstained` where it has none.
        unread: The language that the judge does not read, where it abstained for that.
        to_check: It is called supported, and shows a failure pattern.
        deciding: The passages that decided it, best first.
        explanation: The reasons of the judge that decided, where it gives any.
    """

    ordinal: int
    stage: int
    text: str
    context: str
    start: int
    end: int
    verdict: str
    unread: str | None
    misused: bool | None
    to_check: bool
    confidence: float | None
    needs_review: bool
    patterns: tuple[str, ...]
    dangling: tuple[str, ...]
    cited: tuple[Cited, ...]
    deciding: tuple[Passage, ...]
    explanation: str | None
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved passage.

    Attributes:
        pieces: Its text, cut where a deciding window begins or ends; tags are ordinals of the claims decided there.
        used: It decides a supported claim; None where groundedness is not scored.
        relevance: Its row of `page_relevance`, where it has one.
        gold: It is annotated as a right source.
        decides: Ordinals of claims.
        cited_by: Ordinals of claims.
    """

    n: int
    chunk_id: str
    doc_id: str | None
    title: str | None
    rank: int | None
    retrieval_score: float | None
    relevance: Row | None
    used: bool | None
    gold: bool
    pieces: tuple[Piece, ...]
    decides: tuple[int, ...]
    cited_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer, and the claim that it is part of.

    Attributes:
        first: It is the claim's first piece, to which one can link.
    """

    text: str
    claim: Claim | None
    first: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace.

    Attributes:
        row: Its row of `page_traces`.
        answer: Its pieces; joined, they are the answer.
        marked: Ordinals of the claims that have a piece of the answer.
        evidence: Of the failure patterns of each claim, by its ordinal.
        relevance: Kind to the row of `page_relevance` that says how it was scored, and why it was not; of chunks, any.
        others: Rows of `page_claims` that are no claims.
        grades: Its rows of `page_grades`, in the order of `GRADES`.
    """

    row: Row
    slug: str
    answer: tuple[Said, ...]
    marked: frozenset[int]
    claims: tuple[Claim, ...]
    chunks: tuple[Chunk, ...]
    evidence: Mapping[int, tuple[Evidence[Passage], ...]]
    relevance: Mapping[str, Row]
    others: tuple[Row, ...]
    grades: tuple[Row, ...]


def trace(
    row: Row,
    rows: Sequence[Row],
    looks: Mapping[str, Sequence[Row]],
    relevance: Sequence[Row],
    grades: Sequence[Row] = (),
) -> Trace:
    """The view of one trace.

    Args:
        rows: Its rows of `page_claims`, by ordinal.
        looks: Claim id to the claim's rows of `page_pairs`.
        relevance: Its rows of `page_relevance`.
        grades: Its rows of `page_grades`.
    """
    chunks = row["chunks"]
    claims = [r for r in rows if r["kind"] == "claim"]
    relevant = {r["chunk_id"]: r for r in relevance if r["kind"] == "context"}
    where: dict[str, int] = {}
    for n, c in enumerate(chunks):
        where.setdefault(c["chunk_id"], n)
    said = {c["claim_id"]: c for c in claims}
    views = tuple(_claim(c, looks.get(c["claim_id"], ()), chunks, where, said) for c in claims)
    answer = _said(row["answer"], views)
    unused = row["chunks_unused"]
    gold = row["gold_chunk_ids"] if row["right_chunk_ids"] is None else row["right_chunk_ids"]
    return Trace(
        row={**row, "tags": dict(row["tags"] or ())},  # a map comes as pairs or as a dictionary
        slug=slug(row["trace_id"]),
        answer=tuple(answer),
        marked=frozenset(piece.claim.ordinal for piece in answer if piece.claim),
        claims=views,
        evidence={c["ordinal"]: evidence(c, row["answer"], lambda e: _passage(e, chunks, where)) for c in claims},
        relevance={r["kind"]: r for r in relevance},
        others=tuple(r for r in rows if r["kind"] != "claim"),
        grades=tuple(sorted(grades, key=lambda g: GRADES.index(g["grade"]))),
        chunks=tuple(
            Chunk(
                n=n,
                chunk_id=c["chunk_id"],
                doc_id=c["doc_id"],
                title=c["title"],
                rank=c["rank"],
                retrieval_score=c["retrieval_score"],
                relevance=relevant.get(c["chunk_id"]),
                used=None if unused is None else c["chunk_id"] not in unused,
                gold=c["chunk_id"] in (gold or ()),
                pieces=tuple(pieces(c["text"], _windows(n, len(c["text"]), views))),
                decides=tuple(v.ordinal for v in views if any(p.n == n for p in v.deciding)),
                cited_by=tuple(v.ordinal for v in views if any(p.passage.n == n for p in v.cited)),
            )
            for n, c in enumerate(chunks)
        ),
    )


def _said(answer: str, claims: Sequence[Claim]) -> list[Said]:
    """The answer cut at its claims. Where two overlap, which extractors avoid, the one that begins first is marked."""
    by = {c.ordinal: c for c in claims}
    met: set[int] = set()
    said = []
    for text, tags in pieces(answer, [(c.start, c.end, c.ordinal) for c in claims]):
        claim = by[tags[0]] if tags else None
        said.append(Said(text, claim, bool(claim) and tags[0] not in met))
        met.update(tags[:1])
    return said


def _claim(
    row: Row, looks: Sequence[Row], chunks: Sequence[Row], where: Mapping[str, int], said: Mapping[str, Row]
) -> Claim:
    verdict = row["label"] if row["status"] == "judged" else row["status"]
    support = {s["chunk_id"]: s for s in row["cited_support"] or ()}
    # Results are made of the first sample.
    counting = [look for look in looks if look["stage"] == row["stage"] and not look["sample"]]
    decided_by, deciding = _deciding(row, counting)

    def cited(chunk_id: str) -> Cited:
        alone = [look for look in counting if {e["chunk_id"] for e in look["evidence"]} == {chunk_id}]
        named = [look for look in counting if chunk_id in {e["chunk_id"] for e in _named(look)}]
        best = max(alone or named, key=lambda look: _p(look, "p_supported"), default=None)
        shown = [e for e in (_named(best) or best["evidence"]) if e["chunk_id"] == chunk_id] if best else []
        passage = _passage(shown[0] if shown else _whole(chunk_id), chunks, where)
        if own := support.get(chunk_id):
            return Cited(passage, own["label"] or "unjudged", own["p_supported"])
        if named:
            return Cited(passage, best["label"] if best else None, None)
        among = any(chunk_id in {e["chunk_id"] for e in look["evidence"]} and look["label"] for look in counting)
        return Cited(passage, None if among else "unjudged", None)

    return Claim(
        ordinal=row["ordinal"],
        stage=row["stage"],
        text=row["text"],
        context=row["context"],
        start=row["span_start"],
        end=row["span_end"],
        verdict=verdict or "unjudged",
        unread=(row["language"] or "unknown") if row["abstained_for"] == "language" else None,
        misused=row["misused"],
        to_check=bool(row["to_check"]),
        confidence=row["confidence"],
        needs_review=bool(row["needs_review"]),
        patterns=tuple(row["patterns"] or ()),
        dangling=tuple(row["dangling_citations"]),
        cited=tuple(cited(c) for c in row["cited_chunk_ids"]),
        deciding=tuple(_seen(e, chunks, where, said, named=bool(decided_by and _named(decided_by))) for e in deciding),
        explanation=decided_by["explanation"] if decided_by else None,
        looks=tuple(_look(look, chunks, where, said) for look in looks),
    )


def _look(look: Row, chunks: Sequence[Row], where: Mapping[str, int], said: Mapping[str, Row]) -> Look:
    return Look(
        stage=look["stage"],
        kind=look["pair_kind"],
        passages=tuple(
            _seen(e, chunks, where, said, named=n in look["passages"]) for n, e in enumerate(look["evidence"], start=1)
        ),
        cited=look["cited"],
        sample=look["sample"],
        label=look["label"],
        failure=look["failure"],
        p_supported=look["p_supported"],
        p_contradicted=look["p_contradicted"],
        explanation=look["explanation"],
    )


def _named(look: Row) -> list[Row]:
    """The part of the evidence that the judge named, the deciding one first."""
    return [look["evidence"][n - 1] for n in look["passages"]]


def _deciding(row: Row, looks: Sequence[Row]) -> tuple[Row | None, list[Row]]:
    """The look that decided a claim, and what of its evidence did.

    Of the looks that come down to exactly the deciding chunks, one with the claim's label, and the surest of those.
    Without such a look (verdicts were lost) the chunks stand by themselves, without a window.
    """
    side = "p_contradicted" if row["label"] == "contradicted" else "p_supported"
    ids = row["deciding_chunk_ids"] or ([row["deciding_chunk_id"]] if row["deciding_chunk_id"] else [])
    shown = [look for look in looks if look["pair_kind"] == "found_true"]
    if shown and row["label"]:  # claims decide, and no chunks
        look = max(shown, key=lambda one: (one["label"] == row["label"], _p(one, side)))
        return look, _named(look) or list(look["evidence"])
    if not ids:
        return None, []
    came_down = [(look, _named(look) or list(look["evidence"])) for look in looks]
    exact = [(look, shown) for look, shown in came_down if {e["chunk_id"] for e in shown} == set(ids)]
    if not exact:
        return None, [_whole(i) for i in ids]
    look, shown = max(exact, key=lambda one: (one[0]["label"] == row["label"], _p(one[0], side)))
    return look, sorted(shown, key=lambda e: ids.index(e["chunk_id"])) if _named(look) else shown


def _whole(chunk_id: str) -> Row:
    return {"chunk_id": chunk_id, "start": 0, "end": None}


def _p(look: Row, side: str) -> float:
    return -1.0 if look[side] is None else float(look[side])


def _seen(
    evidence: Row, chunks: Sequence[Row], where: Mapping[str, int], said: Mapping[str, Row], *, named: bool
) -> Passage:
    """A passage of a chunk, or a claim of the answer in its place."""
    if evidence["chunk_id"] in where or evidence["chunk_id"] not in said:
        return _passage(evidence, chunks, where, named=named)
    claim = said[evidence["chunk_id"]]
    start, end = evidence["start"], evidence["end"]
    return Passage(None, evidence["chunk_id"], None, excerpt(claim["text"]), start, end, named, claim["ordinal"])


def _passage(evidence: Row, chunks: Sequence[Row], where: Mapping[str, int], *, named: bool = False) -> Passage:
    n = where.get(evidence["chunk_id"])
    chunk: Row = {"text": "", "title": None} if n is None else chunks[n]
    start, end = evidence["start"], len(chunk["text"]) if evidence["end"] is None else evidence["end"]
    return Passage(n, evidence["chunk_id"], chunk["title"], excerpt(chunk["text"], start, end), start, end, named)


def _windows(n: int, length: int, claims: Sequence[Claim]) -> list[Span]:
    """Deciding windows in chunk `n`; a window that is the whole chunk marks nothing."""
    return [
        (p.start, p.end, claim.ordinal)
        for claim in claims
        for p in claim.deciding
        if p.n == n and (p.start > 0 or p.end < length)
    ]
