"""Views of a trace for its page: claims in the answer, the judges' pairs, and chunks with the claims they decide.

Pure functions turn rows of tables into frozen views. Queries are in `traces.py`, rendering in `pages.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tasks.core.grades import GRADES
from tasks.publish.report.text import Piece, Span, excerpt, pieces, slug

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of evidence.

    Attributes:
        n: Position of the chunk in its trace, from 0, which is also its anchor; None if the trace has no such chunk.
        excerpt: The shortened passage.
        start: Start offset of the passage in the chunk's text, in characters.
        end: End offset (exclusive).
        named: Whether the judge named this passage as deciding.
        claim: Ordinal of the claim, if the evidence is a claim of the answer instead of a chunk.
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
    """A chunk that a claim cites, with the judge's label (`unjudged` if there is none).

    Attributes:
        label: None if the judge saw the chunk only together with others and did not name it.
    """

    passage: Passage
    label: str | None
    p_supported: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample of one pair.

    Attributes:
        row: Row of `traces/pairs.sql`; `label` is null if judging failed or there is no verdict.
    """

    row: Row
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One failure pattern of a claim.

    Attributes:
        answer: The part of the answer around the claim, cut into pieces; marked pieces have a tag. Empty without marks.
    """

    pattern: str
    answer: tuple[Piece, ...]
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    Attributes:
        row: Row of `traces/claims.sql`. `stage` is the number of the deciding judge or pass, from 1.
        verdict: The label, or `na`, `unjudged` or `abstained` if the claim has none.
        unread: The claim's language, if the judge abstained because it does not read that language.
        deciding: The deciding passages, best first.
        explanation: The deciding judge's explanation, if any.
        evidence: Evidence of the claim's failure patterns.
    """

    row: Row
    verdict: str
    unread: str | None
    cited: tuple[Cited, ...]
    deciding: tuple[Passage, ...]
    explanation: str | None
    pairs: tuple[Pair, ...]
    evidence: tuple[Evidence, ...]

    @property
    def ordinal(self) -> int:
        """The claim's position in the answer, from 0."""
        return int(self.row["ordinal"])


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved passage.

    Attributes:
        row: The chunk as stored in the trace.
        pieces: The text, cut at the ends of deciding windows; tags are the ordinals of the claims decided there.
        used: Whether the chunk decides a supported claim; None if groundedness is not scored.
        relevance: Row of `traces/relevance.sql`, if any.
        gold: Whether the chunk is annotated as a right source.
        decides: Ordinals of the claims that the chunk decides.
        cited_by: Ordinals of the claims that cite the chunk.
    """

    n: int
    row: Row
    relevance: Row | None
    used: bool | None
    gold: bool
    pieces: tuple[Piece, ...]
    decides: tuple[int, ...]
    cited_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the answer, and the claim that contains it.

    Attributes:
        first: Whether this is the claim's first piece, which is the target of links.
    """

    text: str
    claim: Claim | None
    first: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace.

    Attributes:
        row: Row of `traces/scores.sql`.
        answer: Pieces of the answer, in order and without gaps.
        marked: Ordinals of the claims that have a piece of the answer.
        relevance: Row of `traces/relevance.sql` by kind, for its method and failure; for chunks, any one of the rows.
        others: Rows of `traces/claims.sql` that are not claims.
        grades: Rows of `traces/grades.sql`, in the order of `GRADES`.
    """

    row: Row
    slug: str
    answer: tuple[Segment, ...]
    marked: frozenset[int]
    claims: tuple[Claim, ...]
    chunks: tuple[Chunk, ...]
    relevance: Mapping[str, Row]
    others: tuple[Row, ...]
    grades: tuple[Row, ...]


class _Passages:
    """Finds evidence in the chunks of a trace and the claims of its answer."""

    def __init__(self, chunks: Sequence[Row], claims: Sequence[Row]) -> None:
        self._chunks = chunks
        self._places = {c["chunk_id"]: n for n, c in reversed(list(enumerate(chunks)))}
        self._claims = {c["claim_id"]: c for c in claims}

    def find(self, evidence: Row, *, named: bool = False) -> Passage:
        """Return a passage of a chunk, or of a claim that serves as evidence."""
        chunk_id, start, end = (evidence[name] for name in ("chunk_id", "start", "end"))
        n = self._places.get(chunk_id)
        if n is None and (claim := self._claims.get(chunk_id)):
            return Passage(None, chunk_id, None, excerpt(claim["text"]), start, end, named, claim["ordinal"])
        chunk: Row = {"text": "", "title": None} if n is None else self._chunks[n]
        end = len(chunk["text"]) if end is None else end
        return Passage(n, chunk_id, chunk["title"], excerpt(chunk["text"], start, end), start, end, named)


def trace(
    row: Row,
    rows: Sequence[Row],
    pairs: Mapping[str, Sequence[Row]],
    relevance: Sequence[Row],
    grades: Sequence[Row] = (),
) -> Trace:
    """Build the view of one trace.

    Args:
        row: Row of `traces/scores.sql`.
        rows: Rows of `traces/claims.sql`, by ordinal.
        pairs: Rows of `traces/pairs.sql` by claim id.
        relevance: Rows of `traces/relevance.sql`.
        grades: Rows of `traces/grades.sql`.
    """
    chunks, unused = row["chunks"], row["chunks_unused"]
    claims = [r for r in rows if r["kind"] == "claim"]
    relevant = {r["chunk_id"]: r for r in relevance if r["kind"] == "context"}
    passages = _Passages(chunks, claims)
    views = tuple(_claim(c, pairs.get(c["claim_id"], ()), passages, row["answer"]) for c in claims)
    answer = _segments(row["answer"], views)
    gold = row["gold_chunk_ids"] if row["right_chunk_ids"] is None else row["right_chunk_ids"]
    return Trace(
        row={**row, "tags": dict(row["tags"] or ())},  # DuckDB returns a map as pairs or as a dictionary
        slug=slug(row["trace_id"]),
        answer=tuple(answer),
        marked=frozenset(segment.claim.ordinal for segment in answer if segment.claim),
        claims=views,
        relevance={r["kind"]: r for r in relevance},
        others=tuple(r for r in rows if r["kind"] != "claim"),
        grades=tuple(sorted(grades, key=lambda g: GRADES.index(g["grade"]))),
        chunks=tuple(
            Chunk(
                n=n,
                row=c,
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


def _segments(answer: str, claims: Sequence[Claim]) -> list[Segment]:
    """Cut the answer at its claims. If claims overlap, which extractors avoid, the first one is marked."""
    by = {c.ordinal: c for c in claims}
    met: set[int] = set()
    segments = []
    for text, tags in pieces(answer, [(c.row["span_start"], c.row["span_end"], c.ordinal) for c in claims]):
        claim = by[tags[0]] if tags else None
        segments.append(Segment(text, claim, bool(claim) and tags[0] not in met))
        met.update(tags[:1])
    return segments


def _claim(row: Row, pairs: Sequence[Row], passages: _Passages, answer: str) -> Claim:
    verdict = row["label"] if row["status"] == "judged" else row["status"]
    # Results use only the first sample.
    counting = [pair for pair in pairs if pair["stage"] == row["stage"] and not pair["sample"]]
    decided_by, deciding = _deciding(row, counting)
    named = bool(decided_by and _named(decided_by))
    return Claim(
        row=row,
        verdict=verdict or "unjudged",
        unread=(row["language"] or "unknown") if row["abstained_for"] == "language" else None,
        cited=tuple(_cited(c, row, counting, passages) for c in row["cited_chunk_ids"]),
        deciding=tuple(passages.find(e, named=named) for e in deciding),
        explanation=decided_by["explanation"] if decided_by else None,
        pairs=tuple(_pair(pair, passages) for pair in pairs),
        evidence=tuple(_evidence(found, row, passages, answer) for found in row["evidence"]),
    )


def _pair(row: Row, passages: _Passages) -> Pair:
    shown = enumerate(row["evidence"], start=1)
    return Pair(row, tuple(passages.find(e, named=n in row["passages"]) for n, e in shown))


def _evidence(found: Row, claim: Row, passages: _Passages, answer: str) -> Evidence:
    """A failure pattern with its marks in the answer.

    Args:
        found: An item of the claim's `evidence`.
        claim: The claim's row of `traces/claims.sql`.
    """
    marks, marked = found["answer_spans"], []
    if marks:
        left = min(claim["span_start"], *(m["start"] for m in marks))
        right = max(claim["span_end"], *(m["end"] for m in marks))
        marked = pieces(answer[left:right], [(m["start"] - left, m["end"] - left, 0) for m in marks])
    return Evidence(found["pattern"], tuple(marked), tuple(map(passages.find, found["chunk_spans"])))


def _cited(chunk_id: str, claim: Row, pairs: Sequence[Row], passages: _Passages) -> Cited:
    support = {s["chunk_id"]: s for s in claim["cited_support"] or ()}
    alone = [pair for pair in pairs if _chunks(pair["evidence"]) == {chunk_id}]
    named = [pair for pair in pairs if chunk_id in _chunks(_named(pair))]
    best = max(alone or named, key=lambda pair: _p(pair, "p_supported"), default=None)
    shown = [e for e in (_named(best) or best["evidence"]) if e["chunk_id"] == chunk_id] if best else []
    passage = passages.find(shown[0] if shown else _whole(chunk_id))
    if own := support.get(chunk_id):
        return Cited(passage, own["label"] or "unjudged", own["p_supported"])
    if named:
        return Cited(passage, best["label"] if best else None, None)
    among = any(chunk_id in _chunks(pair["evidence"]) and pair["label"] for pair in pairs)
    return Cited(passage, None if among else "unjudged", None)


def _chunks(evidence: Sequence[Row]) -> set[str]:
    return {e["chunk_id"] for e in evidence}


def _named(pair: Row) -> list[Row]:
    """The passages that the judge named, the deciding one first."""
    return [pair["evidence"][n - 1] for n in pair["passages"]]


def _deciding(row: Row, pairs: Sequence[Row]) -> tuple[Row | None, list[Row]]:
    """Return the pair that decided a claim, and its deciding evidence.

    Candidates are pairs whose deciding evidence is exactly the deciding chunks. A pair with the claim's label comes
    before others, then the most confident pair. Without a candidate (verdicts were lost), whole chunks are returned.
    """
    side = "p_contradicted" if row["label"] == "contradicted" else "p_supported"
    ids = row["deciding_chunk_ids"] or ([row["deciding_chunk_id"]] if row["deciding_chunk_id"] else [])
    shown = [pair for pair in pairs if pair["pair_kind"] == "found_true"]
    if shown and row["label"]:  # the deciding evidence is claims, not chunks
        pair = max(shown, key=lambda one: (one["label"] == row["label"], _p(one, side)))
        return pair, _named(pair) or list(pair["evidence"])
    if not ids:
        return None, []
    decided = [(pair, _named(pair) or list(pair["evidence"])) for pair in pairs]
    exact = [(pair, evidence) for pair, evidence in decided if _chunks(evidence) == set(ids)]
    if not exact:
        return None, [_whole(i) for i in ids]
    pair, evidence = max(exact, key=lambda one: (one[0]["label"] == row["label"], _p(one[0], side)))
    return pair, sorted(evidence, key=lambda e: ids.index(e["chunk_id"])) if _named(pair) else evidence


def _whole(chunk_id: str) -> Row:
    return {"chunk_id": chunk_id, "start": 0, "end": None}


def _p(pair: Row, side: str) -> float:
    return -1.0 if pair[side] is None else float(pair[side])


def _windows(n: int, length: int, claims: Sequence[Claim]) -> list[Span]:
    """Deciding windows in chunk `n`, without windows that cover the whole chunk."""
    return [
        (p.start, p.end, claim.ordinal)
        for claim in claims
        for p in claim.deciding
        if p.n == n and (p.start > 0 or p.end < length)
    ]
