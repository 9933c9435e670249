"""Citation drift: a chunk supports the claim, but the claim cites other chunks.

Method: docs/methods.md#labels and #failure-patterns.
"""

from collections.abc import Sequence

from tasks.patterns._base import Chunk, Claim, Found

RULES = 1  # raised when the same claim and chunks give a different finding


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The supporting chunks, which the claim should have cited."""
    if claim.label != "supported" or not claim.misused:
        return None
    return Found(chunk_spans=tuple(chunk.place() for i in claim.deciding for chunk in chunks if chunk.chunk_id == i))
