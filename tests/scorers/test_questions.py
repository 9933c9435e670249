"""Question regeneration: mean cosine of the written questions and the real one, in [0, 1].

Method: docs/methods.md#scores-of-one-trace.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from tasks.engines.transformers_cpu import Embedded, Embedder, EmbedderConfig
from tasks.scorers.questions import mean_cosines

# Unit vectors: their cosines with "east" are 1, 0, -1, 0.6 and 0.8.
VECTORS = {"east": (1, 0), "north": (0, 1), "west": (-1, 0), "up": (0.6, 0.8), "flat": (0.8, 0.6), "": (0, 0)}


class Compass:
    def embed(self, texts: Sequence[str]) -> Embedded:
        rows = np.array([VECTORS[t] for t in texts], np.float32).reshape(-1, 2)
        return Embedded(rows, np.ones(len(texts), np.int64))


@pytest.mark.parametrize(
    ("written", "score"),
    [
        (["east"], 1.0), (["north"], 0.0), (["up", "flat", "east"], 0.8), (["west"], 0.0),
        (["west", "east", "up"], 0.2),  # a mean, in which an opposite counts against the others
        ([""], 0.0), ([], None),
    ],
)  # fmt: skip
def test_mean_cosine(written: list[str], score: float | None) -> None:
    assert mean_cosines(Compass(), [("east", written)]) == [(score, 1 + len(written))]


def test_each_answer_is_held_against_its_own_question() -> None:
    found = mean_cosines(Compass(), [("east", ["up"]), ("north", []), ("west", ["up", "west"])])
    assert [score for score, _ in found] == [0.6, None, 0.2]
    assert mean_cosines(Compass(), []) == []


def test_with_the_real_model_a_dodge_scores_below_an_answer() -> None:
    """What answers the question would also be question for by it; "try again later" answers something else."""
    embedder = Embedder(EmbedderConfig(threads=1))
    question = "How long does a refund take?"
    (near, _), (far, _) = mean_cosines(
        embedder,
        [
            (question, ["How many days do refunds take?", "When will I get my money back?"]),
            (question, ["What should I do if the chat is down?"]),
        ],
    )
    embedder.close()
    assert near is not None
    assert far is not None
    assert far < 0.3 < 0.6 < near <= 1
