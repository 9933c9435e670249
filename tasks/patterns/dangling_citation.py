"""Dangling citation: the claim refers to a chunk that is not in its trace.

Method: docs/methods.md#claims and #failure-patterns.
"""

import re
from collections.abc import Sequence

from tasks.patterns._base import Chunk, Claim, Found, Span

RULES = 1  # raised when the same claim and chunks give a different finding
REACH = 1_000  # characters after a claim's end in which its reference may stand


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:  # noqa: ARG001 - what is missing is in no chunk
    """Places of the references. A structured reference, or one that is too far away, has no place."""
    if not claim.dangling:
        return None
    at = (_place(claim, reference) for reference in claim.dangling)
    return Found(answer_spans=tuple(span for span in at if span))


def _place(claim: Claim, reference: str) -> Span | None:
    """Place of a reference between marks such as brackets, or else its last mention in the claim."""
    marked = re.compile(rf"[\[(【^,;:#†–-]\s*({re.escape(reference)})(?!\w)")
    if found := marked.search(claim.answer, claim.start, claim.end + REACH):
        return found.span(1)
    start = claim.answer.rfind(reference, claim.start, claim.end)
    return (start, start + len(reference)) if start >= 0 else None
