"""Scorers: rate the relevance of an answer and of each chunk to a question, and whether the chunks answer it.

A recipe picks a method for each of the three. A scorer is one model or rule with its own `scorer_version`, which
identifies its scores in the table `relevance`. Answers and chunks scored by embedding share one scorer.
"""

from collections.abc import Mapping, Sequence

from tasks.core.config import Recipe
from tasks.engines.generator import Generator
from tasks.engines.transformers_cpu import Embedder
from tasks.judges import generate, rater_model
from tasks.scorers import reranked
from tasks.scorers.coverage import Coverage
from tasks.scorers.embedding import BOTH, Embedding
from tasks.scorers.items import Item, Kind, Scored, Scorer
from tasks.scorers.questions import Questions
from tasks.scorers.rated import GIVES, Rated, check_rating
from tasks.scorers.reranked import Reranked

__all__ = ["KINDS", "Item", "Kind", "Scored", "Scorer", "load", "stage_name", "versions"]
KINDS: tuple[Kind, ...] = ("answer", "context", "answerability")


def load(recipe: Recipe, embedder: Embedder, generators: dict[str, Generator] | None = None) -> tuple[Scorer, ...]:
    """The scorers of a recipe in the order they run. Those with the same model are adjacent. No model is loaded.

    Args:
        recipe: A recipe with absolute paths.
        generators: Language models of other recipes. Matching ones are reused; new ones are added.

    Raises:
        ConfigError: A model's file is wrong, or its prompt does not ask for the required rating.
    """
    shared = {} if generators is None else generators
    methods = {"answer": recipe.answer_relevance.method, "context": recipe.context_relevance.method}
    embedded = tuple(kind for kind in BOTH if methods[kind] == "embedding")
    found: list[Scorer] = [Embedding(embedded, embedder, recipe.pairing.window_words)] if embedded else []
    if recipe.answerability.method == "coverage":
        found.append(Coverage())
    if recipe.answer_relevance.method == "questions" and (path := recipe.answer_relevance.writer):
        found.append(Questions(generate.load(path, ("answer",), shared), embedder))
    if recipe.context_relevance.method == "reranker" and (path := recipe.context_relevance.reranker):
        found.append(Reranked(reranked.load(path), recipe.pairing.window_words))
    raters = {
        "answer": recipe.answer_relevance.rater,
        "context": recipe.context_relevance.rater,
        "answerability": recipe.answerability.rater,
    }
    for kind in KINDS:
        if path := raters[kind]:
            own = rater_model.load(path, GIVES[kind], shared)
            check_rating(own, kind, path)
            found.append(Rated(kind, own))
    for scorer in found:
        scorer.earlier_questions = recipe.earlier_questions
    models = [scorer.model for scorer in found]
    return tuple(sorted(found, key=lambda scorer: next(i for i, m in enumerate(models) if m is scorer.model)))


def versions(scorers: Sequence[Scorer], embedder: Embedder) -> Mapping[str, str]:
    """`scorer_version` by kind, with the version of the embedding model, which also ranks chunks."""
    return {"embedder": embedder.version, **{kind: s.version for s in scorers for kind in s.kinds}}


def stage_name(scorer: Scorer) -> str:
    """The name of a scorer's stage."""
    own = {"answer": "answer relevance", "context": "context relevance", "answerability": "answerability"}
    return "relevance" if len(scorer.kinds) > 1 else own[scorer.kinds[0]]
