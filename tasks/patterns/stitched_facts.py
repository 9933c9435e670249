"""Stitched facts: two chunks state the parts of the claim, but no chunk states the whole.

Method: docs/methods.md#failure-patterns.

Only claims that the judge does not fully support are examined: if chunks entail a claim together, nothing is stitched.
Shared words assign the parts to chunks. Left out: paraphrased parts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tasks.patterns._base import Chunk, Claim, Found, Place, Span
from tasks.text.words import Word, coverage, stems, words

RULES = 1  # raised when the same claim and chunks give a different finding

# Boundaries of two statements: a comma, a coordinating or subordinating word, a relative pronoun, a causal phrase.
SEAM = re.compile(
    r"[,;:–—]\s+(?:and|but|or|which|who|whose|where|while|whereas|although|though|because|so|since|then|making|leading)?\b|"
    r"[,;–—()]|\s(?:and|but|while|whereas|although|though|because|so that|since|after|before|when|which|who|whose|"
    r"where|that|by|through|thanks to|due to|as well as|leading to|resulting in|along with|with|for|in|to)\s",
    re.IGNORECASE,
)
FEWEST = 2  # minimum content words of a part
HELD = 0.75  # share of a part's content words that its chunk needs in one place
LONGEST = 240  # maximum characters of that place, because a long place contains any words
LACKED = 0.5  # maximum share of a part's content words in the other chunk
HELD_JUDGED, LACKED_JUDGED = 0.6, 0.6  # the same if the judge found that both chunks support a part


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The two parts and their places."""
    if not claim.refuted or len(chunks) < 2:
        return None
    judged = set(claim.in_part)
    held, lacked = (HELD_JUDGED, LACKED_JUDGED) if len(judged) >= 2 else (HELD, LACKED)
    among = [chunk for chunk in chunks if chunk.chunk_id in judged] if len(judged) >= 2 else chunks
    claim_words = words(claim.text)
    wholes = [chunk.stems for chunk in among]
    best: tuple[float, Found] | None = None
    for left, right in _cuts(claim.text, claim_words):
        homes = [_home(stems(part), among, wholes, held) for part in (left, right)]
        for share_a, i, place_a in homes[0]:
            for share_b, j, place_b in homes[1]:
                # Each chunk must lack the other part; otherwise one chunk is about the whole claim.
                if i == j or coverage(stems(right), wholes[i]) > lacked or coverage(stems(left), wholes[j]) > lacked:
                    continue
                if best is None or share_a + share_b > best[0]:
                    spans = tuple(claim.where(part[0].start, part[-1].end) for part in (left, right))
                    best = share_a + share_b, Found(spans, (place_a, place_b))
    return best[1] if best else None


def _cuts(text: str, claim_words: Sequence[Word]) -> Iterator[tuple[list[Word], list[Word]]]:
    """The claim cut in two at each boundary."""
    for seam in SEAM.finditer(text):
        left = [w for w in claim_words if w.end <= seam.start() + 1]
        right = [w for w in claim_words if w.start >= seam.end() - 1]
        if len(stems(left)) >= FEWEST and len(stems(right)) >= FEWEST:
            yield left, right


def _home(
    part: frozenset[str], chunks: Sequence[Chunk], wholes: Sequence[frozenset[str]], held: float
) -> list[tuple[float, int, Place]]:
    """Chunks with a part in one sentence or two neighboring ones: share, index of the chunk, place."""
    found = []
    for i, (chunk, whole) in enumerate(zip(chunks, wholes, strict=True)):
        if coverage(part, whole) < held:
            continue
        places: list[tuple[frozenset[str], Span]] = [(s.stems, (s.start, s.end)) for s in chunk.sentences]
        places += [(a.stems | b.stems, (a.start, b.end)) for a, b in pairwise(chunk.sentences)]
        short = [(coverage(part, has), at) for has, at in places if at[1] - at[0] <= LONGEST]
        share, (start, end) = max(short, key=lambda one: one[0], default=(0.0, (0, 0)))
        if share >= held:
            found.append((share, i, chunk.place(start, end)))
    return found
