"""Relevance by every method: grades, questions, a reranker and words; what fails or is lost has no score and no guess."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from aiohttp import web
from kit.chat_server import ChatServer, answer, error, serve
from kit.root import ROOT
from kit.stage_kit import Directions, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.config import Recipe, load_nightly, validate
from tasks.core.errors import ConfigError, EngineError
from tasks.core.schemas import NIGHTLY_RELEVANCE, RELEVANCE, TRACE_SCORES
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.judging.estimate import estimate
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_by, score_relevance
from tasks.judging.verdicts import judge_pairs
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.scorers import Item, Scored, stage_name
from tasks.scorers.coverage import NO_WORDS, Coverage
from tasks.scorers.items import once
from tasks.scorers.rated import share
from tasks.scorers.reranked import Reranked
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces

PROMPTS = ROOT / "configs" / "prompts"
RATED = {
    "answer_relevance": {"method": "rated", "rater": "relevance.yaml"},
    "context_relevance": {"method": "rated", "rater": "chunk_relevance.yaml"},
    "answerability": {"method": "rated", "rater": "answerability.yaml"},
}


def item(kind: str = "answerability", question: str = "Where are backups kept?", **more: Any) -> Item:
    values: dict[str, Any] = {"trace_id": "t", "chunk_id": None, "answer": "In a vault.", "passages": ("a",), **more}
    return Item(kind=kind, question=question, **values)  # type: ignore[arg-type]


class TestCoverage:
    @pytest.mark.parametrize(
        ("question", "passages", "expected"),
        [
            ("Where are backups kept?", ("Backups are kept in a vault.",), 1.0),
            ("Where are backups kept?", ("The backup is old.", "We keep cats."), 1.0),  # stems, and chunks together
            ("Where are backups kept?", ("The backup is old.",), 0.5),  # "backup" of "backup" and "keep"
            ("Where are backups kept?", ("Cats purr.",), 0.0),
            ("Where are backups kept?", ("   ",), 0.0),
            ("How many backups of 2024 failed on Monday?", ("Backups ran in 2024.",), 0.5),  # of 4 content words
        ],
    )
    def test_it_is_the_share_of_the_questions_words(
        self, question: str, passages: tuple[str, ...], expected: float
    ) -> None:
        assert Coverage().score([item(question=question, passages=passages)]) == [Scored(expected)]

    def test_a_question_without_content_words_has_no_score(self) -> None:
        assert Coverage().score([item(question="Why is it so?")]) == [Scored(None, NO_WORDS)]


@pytest.mark.parametrize(
    ("grade", "expected"), [(1, 0.0), (2, 0.25), (5, 1.0), (3.5, 0.625), (True, 1.0), (False, 0.0), (None, None)]
)
def test_a_grade_is_a_share_of_its_scale(grade: Any, expected: float | None) -> None:
    assert share(grade) == expected  # docs/methods.md#scores-of-one-trace, in [0, 1]: (g - 1) / 4


def test_the_same_is_asked_once_and_the_blank_not_at_all() -> None:
    asked: list[list[str]] = []

    def ask(items: list[Item]) -> list[Scored]:
        asked.append([i.passages[0] for i in items])
        return [Scored(0.5, tokens_in=7) for _ in items]

    items = [item(passages=(text,)) for text in ("b", "a", " ", "b")]
    found = once(items, lambda i: i.passages, ask)
    assert asked == [["a", "b"]]  # what shares passages side by side
    assert found == [Scored(0.5, tokens_in=7), Scored(0.5, tokens_in=7), Scored(0.0), Scored(0.5)]


class TestConfig:
    @pytest.mark.parametrize(
        ("key", "settings", "message"),
        [
            ("answer_relevance", {"method": "rated"}, "has method rated and no rater"),
            ("answer_relevance", {"method": "questions", "rater": "g"}, "has method questions and no writer"),
            ("answer_relevance", {"writer": "w"}, "names a writer, which method embedding does not use"),
            ("context_relevance", {"method": "reranker"}, "has method reranker and no reranker"),
            ("context_relevance", {"method": "questions"}, "should be 'embedding', 'reranker' or 'rated'"),
            ("answerability", {"method": "embedding"}, "should be 'coverage' or 'rated'"),
            ("answerability", {"writer": "w"}, "is not a known key"),
        ],
    )
    def test_a_wrong_combination_is_refused(self, key: str, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            validate(Recipe, {"judge": "j.yaml", key: settings}, "n.yaml", "recipe")
        assert str(caught.value).startswith(f"n.yaml: recipe.{key}")

    def test_paths_are_relative_to_the_file(self, tmp_path: Path) -> None:
        config = {"lake": "l", "warehouse": "w", "report": {"dir": "r"}, "sources": [{"kind": "jsonl", "paths": ["x"]}]}
        recipe = {"judge": "j.yaml", **RATED}
        (tmp_path / "n.yaml").write_text(yaml.safe_dump({**config, "recipe": recipe}))
        found = load_nightly(tmp_path / "n.yaml").recipe
        assert found is not None
        assert found.answer_relevance.rater == tmp_path.resolve() / "relevance.yaml"
        assert found.answerability.rater == tmp_path.resolve() / "answerability.yaml"

    def test_a_prompt_without_the_grade_is_refused(self, tmp_path: Path) -> None:
        files(tmp_path, "http://127.0.0.1:9/v1")
        wrong = {"answerability": {"method": "rated", "rater": "chunk_relevance.yaml"}}
        with pytest.raises(ConfigError, match=r"prompt asks for context_relevance and for no rating answerable"):
            context(tmp_path, recipe=wrong)


def test_a_chunk_counts_by_its_best_window(tmp_path: Path) -> None:
    pairs: list[tuple[str, str]] = []

    class Rule:
        """A reranker that finds windows about cats relevant."""

        version, gpus = "r", 0

        def score(self, some: Sequence[tuple[str, str]]) -> tuple[Any, Any]:
            pairs.extend(some)
            return np.array([0.9 if "cats" in window else 0.25 for _, window in some]), np.full(len(some), 3)

        def close(self) -> None:
            """Nothing is held."""

    ctx = context(tmp_path, embedder=Directions())
    dogs, cats = ("Here " + f"{what} and " * 8 + "more." for what in ("dogs", "cats"))  # 18 words each
    put(ctx, trace("t", chunks={"a": f"{dogs} {cats}", "b": dogs, "c": " "}))
    scorer = Reranked(Rule(), 20)  # type: ignore[arg-type]
    done = score_by(replace(ctx, scorers=(scorer,)), scorer=scorer)
    assert scores(ctx) == {
        ("context", "a"): (0.9, None), ("context", "b"): (0.25, None), ("context", "c"): (0.0, None),
    }  # fmt: skip
    assert {window.strip() for _, window in pairs} == {dogs, cats}
    assert {question for question, _ in pairs} == {"How hot is tea?"}
    assert done.tokens_in == 3 * 3  # windows


def files(root: Path, url: str) -> None:
    """Files of graders and a writer that ask one server; what the model is does not matter there."""
    model = {
        "engine": "openai_server",
        "model": "x",
        "revision": "0" * 40,
        "server": {"urls": [url], "retries": 0},
    }
    for name in ("relevance", "chunk_relevance", "answerability"):
        own = {"kind": "rater_model", "prompt": str(PROMPTS / name / "v1.md"), "model": model}
        (root / f"{name}.yaml").write_text(yaml.safe_dump(own))
    own = {"kind": "generate", "prompt": str(PROMPTS / "questions/v1.md"), "most": 3, "model": model}
    (root / "questions.yaml").write_text(yaml.safe_dump(own))


def last_message(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


@contextmanager
def model(root: Path, rule: Callable[[str], object]) -> Iterator[ChatServer]:
    """A server whose replies follow a rule over what it is asked; a number is an HTTP error."""

    async def handle(server: ChatServer, body: dict[str, Any]) -> web.StreamResponse:
        found = rule(last_message(body))
        if isinstance(found, int):
            return error(found)
        return answer(body, found if isinstance(found, str) else json.dumps(found))

    with serve(handle) as server:
        files(root, server.url)
        yield server


def scores(ctx: Context) -> dict[tuple[str, str | None], tuple[float | None, str | None]]:
    return {(r["kind"], r["chunk_id"]): (r["score"], r["failure"]) for r in rows(ctx, RELEVANCE)}


def grades(shown: str) -> object:
    """5 for a passage about tea, 2 for others; the answer 4; answerable."""
    if "Task: relevance" in shown:
        return {"context_relevance": 5, "answer_relevance": 4}
    if "<passage 2>" in shown:
        return {"answerable": True}
    return {"context_relevance": 5 if "Tea" in shown else 2} if "<passage 1>\nT" in shown or "Cats" in shown else {}


CHUNKS = {"a": "Tea is served at 80 degrees.", "b": "Cats purr.", "c": " "}


def test_a_model_grades_answer_chunks_and_answerability(tmp_path: Path) -> None:
    with model(tmp_path, grades) as server:
        ctx = context(tmp_path, recipe=RATED)
        put(ctx, trace("t", chunks=CHUNKS))
        estimated = estimate(ctx)
        done = score_relevance(ctx)
    assert scores(ctx) == {
        ("answer", None): (0.75, None),  # 4 of 1 to 5
        ("context", "a"): (1.0, None),
        ("context", "b"): (0.25, None),
        ("context", "c"): (0.0, None),  # blank, and nobody is asked
        ("answerability", None): (1.0, None),
    }
    assert {r["method"] for r in rows(ctx, RELEVANCE)} == {"rated"}
    assert len(server.asked) == 4
    assert {a.stage: a.requests for a in estimated.requests} == {
        "answer relevance": 1, "context relevance": 2, "answerability": 1,
    }  # fmt: skip
    assert estimated.relevance == 0  # nothing is scored without a model
    assert (done.computed, done.reused, done.lost) == (5, 0, 0)
    assert (done.tokens_in, done.tokens_out) == (4 * 10, 4 * 2)  # as the server counts
    for body in server.asked:  # the evidence first, the question after it
        assert last_message(body).startswith("<passage 1>\n")
        assert last_message(body).index("<passage 1>") < last_message(body).index("<question>\nHow hot is tea?")
    again = score_relevance(ctx)
    assert (again.computed, again.reused) == (0, 5)
    assert len(server.asked) == 4


def test_questions_are_held_against_the_one_that_was_asked(tmp_path: Path) -> None:
    recipe = {"answer_relevance": {"method": "questions", "writer": "questions.yaml"}}

    def written(shown: str) -> object:
        assert "How hot" not in shown  # the model sees the answer alone
        return {"questions": ["How hot is tea?", "How warm is tea?"] if "hot" in shown else ["Who won the cup?"]}

    with model(tmp_path, written) as server:
        ctx = context(tmp_path, embedder=Embedder(EmbedderConfig()), recipe=recipe)  # type: ignore[arg-type]
        put(ctx, trace("t"), trace("u", "Brazil won."), trace("v", " "), trace("w", "Tea is hot.", {}))
        score_relevance(ctx)
    found = {r["trace_id"]: r["score"] for r in rows(ctx, RELEVANCE) if r["kind"] == "answer"}
    assert found["t"] > 0.9  # the same question, and one in other words
    assert found["u"] < 0.3
    assert found["v"] == 0.0
    assert found["w"] == found["t"]
    assert len(server.asked) == 2  # the same answer is asked about once, a blank one not at all
    assert {r["method"] for r in rows(ctx, RELEVANCE)} == {"questions", "embedding", "coverage"}


class TestFailures:
    RECIPE = {"context_relevance": RATED["context_relevance"]}

    def run(self, root: Path, cats: object, **options: Any) -> tuple[Context, Any]:
        """A night whose chunk about cats gets this reply."""
        with model(root, lambda shown: cats if "Cats" in shown else {"context_relevance": 5}):
            ctx = context(root, recipe=self.RECIPE)
            if not trace_parts(ctx):
                put(ctx, trace("t", chunks=CHUNKS), trace("u", chunks={"a": CHUNKS["a"]}))
            done = score_relevance(ctx, **options)
            extract_claims(ctx)
            plan_pairs(ctx)
            judge_pairs(ctx)
            score_traces(ctx)
            aggregate_nights(ctx)
        return ctx, done

    def context_of(self, ctx: Context) -> dict[str, tuple[str, float | None]]:
        found = rows(ctx, TRACE_SCORES, ctx.recipe)
        return {r["trace_id"]: (r["context_relevance_status"], r["context_relevance"]) for r in found}

    @pytest.mark.parametrize("reply", ["five", {"context_relevance": 6}, {"grade": 5}, ""])
    def test_a_reply_that_makes_no_sense_is_a_failure_until_it_is_tried_again(
        self, tmp_path: Path, reply: object
    ) -> None:
        ctx, done = self.run(tmp_path, reply)
        failure = "empty" if reply == "" else "unparsable"
        assert {r["failure"] for r in rows(ctx, RELEVANCE) if r["chunk_id"] == "b"} == {failure}
        assert done.lost == 0
        assert self.context_of(ctx) == {"t": ("unjudged", None), "u": ("scored", 1.0)}
        (night,) = [r for r in rows(ctx, NIGHTLY_RELEVANCE) if r["kind"] == "context"]
        assert (night["n_scored"], night["n_unjudged"], night["relevance_mean"]) == (1, 1, 1.0)
        _, again = self.run(tmp_path, {"context_relevance": 3})
        assert again.computed == 0  # it is stored as a failure
        ctx, again = self.run(tmp_path, {"context_relevance": 3}, retry_failures=True)
        assert again.computed == 1
        assert self.context_of(ctx) == {"t": ("scored", 1.0), "u": ("scored", 1.0)}

    def test_an_outage_stores_nothing_and_the_next_run_asks_again(self, tmp_path: Path) -> None:
        ctx, done = self.run(tmp_path, 503)
        assert done.lost == 1
        assert done.notes == ("1 requests could not be made (outage); the next run makes them again.",)
        assert ("context", "b") not in scores(ctx)
        assert self.context_of(ctx) == {"t": ("unjudged", None), "u": ("scored", 1.0)}
        ctx, done = self.run(tmp_path, {"context_relevance": 1})
        assert (done.computed, done.lost) == (1, 0)
        assert self.context_of(ctx) == {"t": ("scored", 1.0), "u": ("scored", 1.0)}

    def test_a_server_that_is_gone_keeps_what_was_stored(self, tmp_path: Path) -> None:
        files(tmp_path, "http://127.0.0.1:9/v1")
        ctx = context(tmp_path, recipe=self.RECIPE, limits={"shard_requests": 1})
        put(ctx, trace("t", chunks={"c": " ", "a": CHUNKS["a"]}))  # the blank one needs no server
        with pytest.raises(EngineError):
            score_relevance(ctx)
        assert scores(ctx)["context", "c"] == (0.0, None)
        with model(tmp_path, lambda shown: {"context_relevance": 5}):
            ctx = context(tmp_path, recipe=self.RECIPE)
            done = score_relevance(ctx)
        assert scores(ctx)["context", "a"] == (1.0, None)
        assert done.computed == 1


def test_two_recipes_share_what_they_score_alike_and_models_go_one_by_one(tmp_path: Path) -> None:
    with model(tmp_path, grades) as server:
        ctx = context(tmp_path, recipe=RATED)
        assert [stage_name(s) for s in ctx.scorers] == ["answer relevance", "context relevance", "answerability"]
        assert len({id(s.model) for s in ctx.scorers}) == 1  # one language model for the three prompts
        put(ctx, trace("t", chunks=CHUNKS))
        score_relevance(ctx)
        before = len(server.asked)
        other = context(tmp_path, recipe={**RATED, "answer_relevance": {"method": "embedding"}})
        done = score_relevance(other)
    assert len(server.asked) == before
    assert (done.computed, done.reused) == (1, 4)
    assert len(ctx.lake.values(RELEVANCE)) == 4
    assert ctx.recipe != other.recipe


def test_a_scorer_that_the_next_one_shares_its_model_with_is_not_closed(tmp_path: Path) -> None:
    closed: list[str] = []

    class Closing(Coverage):
        def close(self) -> None:
            closed.append(stage_name(self))

    ctx = context(tmp_path, embedder=Directions())
    put(ctx, trace("t"))
    shared = (Closing(), Closing())
    score_relevance(replace(ctx, scorers=shared))  # both have the model None
    assert closed == ["answerability"]
    score_by(ctx, scorer=shared[0])
    assert len(closed) == 2
