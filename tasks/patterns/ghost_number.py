"""Ghost number: a figure of the claim that is in no chunk of its trace, in no format.

Method: docs/methods.md#failure-patterns.

Left out: whether the figure could be computed from others, and whether the user gave it in the question. A sum that no
chunk states is in no chunk.
"""

from collections.abc import Sequence

from tasks.patterns._base import Chunk, Claim, Found
from tasks.text.missing_figures import missing

RULES = 1  # raised when the same claim and chunks give another finding


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """Figures that are in no chunk's text or title."""
    if not chunks:
        return None
    source = "\n".join(text for chunk in chunks for text in (chunk.title, chunk.text))
    ghosts = list(missing(claim.text, source))
    return Found(answer_spans=tuple(claim.where(*span) for span in ghosts)) if ghosts else None
