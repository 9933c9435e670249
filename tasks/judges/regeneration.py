"""Question regeneration: is an answer about its question? Scored by the questions that it would answer.

A model writes the questions from the answer alone (`generate.py`); the nearer they come to the one that was asked, the
more relevant the answer (docs/methods.md#scores-of-one-trace). Leaves out the writing, and where the scores are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.engines.transformers_cpu import Embedder


@dataclass(frozen=True, slots=True)
class Regenerated:
    """One answer's score.

    Attributes:
        score: Mean cosine of the written questions and the real one, in [0, 1], to 4 decimals; below 0 counts as 0.
            None where no question was written.
        tokens_in: Tokens that the embedding model read for it; a text that was read before costs none.
    """

    score: float | None
    tokens_in: int


def regenerated(embedder: Embedder, questions: Sequence[str], written: Sequence[Sequence[str]]) -> list[Regenerated]:
    """The score of each answer, in order.

    Args:
        questions: What was asked.
        written: For each of them, the questions that a model wrote from the answer.

    Raises:
        EngineError: The embedding model can't be loaded or run.
        ValueError: There are not as many lists of written questions as questions.
    """
    texts = [text for pair in zip(questions, written, strict=True) for text in (pair[0], *pair[1])]
    embedded = embedder.embed(texts)
    scores: list[Regenerated] = []
    at = 0
    for own in written:
        end = at + 1 + len(own)
        tokens = int(embedded.tokens[at:end].sum())
        cosines = embedded.vectors[at + 1 : end] @ embedded.vectors[at]
        score = round(max(0.0, float(cosines.mean())), 4) if own else None
        scores.append(Regenerated(score, tokens))
        at = end
    return scores
