"""Token ids in batches whose shape no neighbor decides, so that a result depends on its own text alone.

Every row is padded to a length that its own token count decides, and only rows of equal padded length share a batch.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

PAD_TO = 8  # tokens; wider wastes work on padding, narrower leaves small batches


def batches(counts: Sequence[int], max_tokens: int, batch_tokens: int) -> Iterator[tuple[int, list[int]]]:
    """Padded length and row numbers of each batch, shortest first.

    Args:
        counts: Tokens of each row, at most `max_tokens`.
        batch_tokens: Padded tokens in one batch, unless one row alone has more.
    """
    by_length: dict[int, list[int]] = {}
    for i, count in enumerate(counts):
        by_length.setdefault(min(-(-count // PAD_TO) * PAD_TO, max_tokens), []).append(i)
    for length, members in sorted(by_length.items()):
        size = max(1, batch_tokens // length)
        for at in range(0, len(members), size):
            yield length, members[at : at + size]


def padded(rows: Sequence[Sequence[int]], length: int, fill: int) -> npt.NDArray[np.int64]:
    """Rows as one array, int64, (rows, length), with `fill` behind each."""
    table = np.full((len(rows), length), fill, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
