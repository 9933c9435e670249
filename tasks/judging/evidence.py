"""What a judge is shown of the chunks: the passages that their windows are, and the premise that these make together.

The same function reads them when a pair is planned (for its key) and when it is judged, so that a key is always the
hash of exactly the texts that the judge saw.
"""

from collections.abc import Iterable, Mapping, Sequence

JOINT_SEPARATOR = "\n\n"
Window = tuple[str, int, int]  # of a chunk: its id, first character, one past the last


def passages(evidence: Iterable[Window], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The evidence of one pair, window by window.

    Args:
        texts: Text of each chunk of the trace.
    """
    return tuple(texts[chunk][start:end] for chunk, start, end in evidence)


def premise(shown: Sequence[str]) -> str:
    """Passages as one text."""
    return JOINT_SEPARATOR.join(shown)
