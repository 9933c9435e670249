"""Answer relevance by question regeneration: a model writes questions that the answer would answer.

The model only sees the answer. The closer its questions are to the user's, the more relevant is the answer
(docs/methods.md#scores-of-one-trace). An unreadable reply is a failure, never a score.
"""

from collections.abc import Sequence
from dataclasses import replace

from tasks.engines.transformers_cpu import Embedder
from tasks.judges.generate import Writer
from tasks.scorers.items import Item, ModelScorer, Scored

RULES = 1  # raised when the same replies give a different score
NO_QUESTIONS = "no_questions"


class Questions(ModelScorer):
    """See the module. The recipe closes the embedding model."""

    kinds = ("answer",)
    method = "questions"
    asks = True

    def __init__(self, writer: Writer, embedder: Embedder) -> None:
        super().__init__(writer, writer.generator)
        self._writer, self._embedder = writer, embedder

    def describe(self) -> dict[str, object]:
        """The writer and the embedding model."""
        return {"questions": RULES, "writer": self._writer.version, "embedder": self._embedder.version}

    def shows(self, item: Item) -> tuple[str, ...]:
        """The answer; the writer is not shown the question."""
        return (item.answer,)

    def _shown(self, item: Item) -> tuple[str, ...]:
        return (item.question, item.answer)

    def _request(self, items: list[Item]) -> list[Scored]:
        # The writer only sees the answer, so one request serves an answer to several questions.
        answers = list(dict.fromkeys(i.answer for i in items))
        written = dict(zip(answers, self._writer.write([{"answer": a} for a in answers]), strict=True))
        cosines = mean_cosines(self._embedder, [(i.question, written[i.answer].texts) for i in items])
        found: list[Scored] = []
        for item, (cosine, embedded) in zip(items, cosines, strict=True):
            own = written[item.answer]
            failure = own.failure or (None if own.texts else NO_QUESTIONS)
            found.append(Scored(cosine, failure, own.tokens_in + embedded, own.tokens_cached, own.tokens_out))
            written[item.answer] = replace(own, tokens_in=0, tokens_cached=0, tokens_out=0)
        return found


def mean_cosines(embedder: Embedder, questions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[float | None, int]]:
    """Mean cosine of each question and the questions written for it, in [0, 1], and the tokens embedded for it.

    Cosines are rounded to 4 decimals, and those below 0 count as 0. The mean is None if no question was written. A text
    embedded before takes no tokens.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    embedded = embedder.embed([text for question, written in questions for text in (question, *written)])
    scores: list[tuple[float | None, int]] = []
    at = 0
    for _, written in questions:
        end = at + 1 + len(written)
        cosines = embedded.vectors[at + 1 : end] @ embedded.vectors[at]
        score = round(max(0.0, float(cosines.mean())), 4) if written else None
        scores.append((score, int(embedded.tokens[at:end].sum())))
        at = end
    return scores
