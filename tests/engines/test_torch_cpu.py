"""Batches: every row once, and a padded length that its own count alone decides."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.engines._torch_cpu import PAD_TO, batches, padded


@given(
    counts=st.lists(st.integers(1, 100), max_size=60),
    max_tokens=st.integers(100, 110),
    batch_tokens=st.integers(64, 2000),
)
def test_every_row_is_in_one_batch_of_its_own_length(counts, max_tokens, batch_tokens):
    seen = []
    for length, rows in batches(counts, max_tokens, batch_tokens):
        assert len(rows) == 1 or len(rows) * length <= batch_tokens
        for row in rows:
            alone = next(batches([counts[row]], max_tokens, 64))
            assert alone == (length, [0])
            assert counts[row] <= length <= min(counts[row] + PAD_TO - 1, max_tokens)
        seen += rows
    assert sorted(seen) == list(range(len(counts)))


def test_padded_fills_behind_each_row():
    table = padded([[5, 6], [7]], 3, 1)
    assert table.tolist() == [[5, 6, 1], [7, 1, 1]]
    assert table.dtype == np.int64
