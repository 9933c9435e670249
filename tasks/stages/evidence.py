"""What a judge is shown of the chunks: the premise that their windows make together.

The same function makes the text when a pair is planned (for its key) and when it is judged, so that a key is always
the hash of exactly the text that the judge saw.
"""

from collections.abc import Iterable, Mapping

JOINT_SEPARATOR = "\n\n"


def premise(evidence: Iterable[tuple[str, int, int]], texts: Mapping[str, str]) -> str:
    """The evidence of one pair as the judge reads it.

    Args:
        evidence: Windows (chunk_id, start, end), in order.
        texts: Text of each chunk of the trace.
    """
    return JOINT_SEPARATOR.join([texts[chunk][start:end] for chunk, start, end in evidence])
