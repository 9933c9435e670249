"""Ghost number: a figure in the claim that no chunk of its trace states, in any format.

Method: docs/methods.md#failure-patterns.

Left out: figures that can be computed from others, and figures from the user's question. A sum that no chunk states
counts as missing.
"""

from collections.abc import Sequence

from tasks.patterns._base import Chunk, Claim, Found
from tasks.text.missing_figures import missing

RULES = 1  # raised when the same claim and chunks give a different finding


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The figures that no chunk's text or title has."""
    if not chunks:
        return None
    source = "\n".join(text for chunk in chunks for text in (chunk.title, chunk.text))
    ghosts = list(missing(claim.text, source))
    return Found(answer_spans=tuple(claim.where(*span) for span in ghosts)) if ghosts else None
