"""Relevance: cosines of chosen vectors, the mean over an answer's windows, the best of a chunk's."""

import math
from pathlib import Path

import numpy as np
import pytest
from kit.stage_kit import Directions, context, put, rows, trace

from tasks.core.schemas import RELEVANCE
from tasks.judging.relevance import score_relevance
from tasks.scorers.embedding import answer_relevance, chunk_relevance


def unit(*degrees: float) -> np.ndarray:
    """Unit vectors in the plane, (n, 2)."""
    return np.array([[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees], np.float32)


class TestFormulas:
    @pytest.mark.parametrize(
        ("windows", "expected"),
        [
            ([0], 1.0),
            ([60], 0.5),  # cos 60°
            ([90], 0.0),
            ([150], 0.0),  # a negative cosine counts as none
            ([0, 60], 0.866),  # the mean of two unit vectors lies halfway: cos 30°, 4 decimals
            ([0, 0, 90], 0.8944),  # mean (2, 1)/3, whose cosine to (1, 0) is 2/√5
        ],
    )
    def test_an_answer_counts_by_the_mean_of_its_windows(self, windows: list[float], expected: float) -> None:
        assert answer_relevance(unit(0)[0], unit(*windows)) == pytest.approx(expected, abs=5e-5)

    def test_windows_that_cancel_out_are_about_nothing(self) -> None:
        assert answer_relevance(unit(0)[0], np.array([[1, 0], [-1, 0]], np.float32)) == 0.0

    @pytest.mark.parametrize(
        ("windows", "expected"), [([60], 0.5), ([90, 60, 170], 0.5), ([100, 179], 0.0), ([180, 0], 1.0)]
    )
    def test_a_chunk_counts_by_its_best_window(self, windows: list[float], expected: float) -> None:
        assert chunk_relevance(unit(0)[0], unit(*windows)) == pytest.approx(expected, abs=5e-5)

    def test_a_blank_text_is_relevant_to_nothing(self) -> None:
        blank = np.zeros((1, 2), np.float32)
        assert answer_relevance(unit(0)[0], blank) == chunk_relevance(unit(0)[0], blank) == 0.0
        assert answer_relevance(blank[0], unit(0)) == 0.0


def of(text: str) -> tuple[float, float]:
    """The direction that a text names by its first word, in degrees; a blank one has none."""
    words = text.split()
    return tuple(unit(float(words[0]))[0].tolist()) if words else (0.0, 0.0)  # type: ignore[return-value]


def scores(tmp_path: Path, *traces: dict, **recipe: object) -> dict[tuple[str, str, str | None], float]:
    ctx = context(tmp_path, embedder=Directions(of), recipe=recipe)
    put(ctx, *traces)
    score_relevance(ctx)
    found = (r for r in rows(ctx, RELEVANCE) if r["method"] == "embedding")
    return {(r["trace_id"], r["kind"], r["chunk_id"]): r["score"] for r in found}


def test_one_row_for_the_answer_and_one_for_each_chunk(tmp_path: Path) -> None:
    chunks = {"a": "60 x", "b": "120 x", "e": "  "}
    found = scores(tmp_path, trace("t", "90 x", chunks, question="30 x"), trace("u", "0 x", {}, question="0 x"))
    assert found == {
        ("t", "answer", None): 0.5,  # 60° apart
        ("t", "context", "a"): 0.866,  # 30° apart
        ("t", "context", "b"): 0.0,  # 90° apart
        ("t", "context", "e"): 0.0,  # blank
        ("u", "answer", None): 1.0,  # without chunks there is the answer's row alone
    }


def test_reasoning_is_no_part_of_an_answer(tmp_path: Path) -> None:
    found = scores(tmp_path, trace("t", "<think>90 or so</think>30 x", {}, question="30 x"))
    assert found == {("t", "answer", None): 1.0}


def test_long_texts_are_read_window_by_window(tmp_path: Path) -> None:
    # sentences of 18 words each, so that windows of 20 words hold one: directions 0 and 60, or 90 and 60
    def two(first: int, second: int) -> str:
        return f"{first} {'so it is ' * 5}and ends. {second} {'so it is ' * 5}and ends."

    chunks = {"a": two(90, 60)}
    found = scores(tmp_path, trace("t", two(0, 60), chunks, question="0 why"), pairing={"window_words": 20})
    assert found == {("t", "answer", None): 0.866, ("t", "context", "a"): 0.5}
    other = tmp_path / "long question"
    other.mkdir()
    found = scores(other, trace("t", "30 x", {}, question=two(0, 60)), pairing={"window_words": 20})
    assert found == {("t", "answer", None): 1.0}  # the question too is the mean of its windows: 30°


def test_tokens_are_counted_once_and_nothing_is_scored_twice(tmp_path: Path) -> None:
    ctx = context(tmp_path, embedder=Directions(of))
    put(ctx, trace("t", "90 x", {"a": "60 x", "b": "1 x"}, question="30 x"))
    first = score_relevance(ctx)
    # question, answer and two chunks: a token each; answerability by words costs none
    assert (first.computed, first.reused, first.tokens_in) == (4, 0, 4)
    again = score_relevance(ctx)
    assert (again.computed, again.reused, again.tokens_in) == (0, 4, 0)


def test_other_windows_are_another_scorer(tmp_path: Path) -> None:
    ctx = context(tmp_path, embedder=Directions(of))
    put(ctx, trace("t", "0 x", {}, question="0 x"))
    score_relevance(ctx)
    other = context(tmp_path, embedder=Directions(of), recipe={"pairing": {"window_words": 20}})
    assert score_relevance(other).computed == 1  # what was scored through longer windows is not taken for it
    assert len(ctx.lake.values(RELEVANCE)) == 2
