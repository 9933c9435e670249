"""Citation drift: the claim is supported, by a chunk other than those it cites.

Method: docs/methods.md#labels and #failure-patterns.
"""

from collections.abc import Sequence

from tasks.patterns._base import Chunk, Claim, Found

RULES = 1  # raised when the same claim and chunks give another finding


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The chunks that support it: they are what it should have cited."""
    if claim.label != "supported" or not claim.misused:
        return None
    return Found(chunk_spans=tuple(chunk.place() for i in claim.deciding for chunk in chunks if chunk.chunk_id == i))
