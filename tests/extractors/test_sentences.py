"""The extractor `sentences`: segments, cut further (docs/methods.md#claims). A claim is written as (text, chunks)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.types import Answer, Chunk, Citation
from tasks.extractors import load

TRACE = [Chunk("a", "t"), Chunk("b", "t"), Chunk("c", "t")]  # [1], [2], [3]
WINDOW = 4_000  # characters that are segmented at a time


def claims(answer: str, citations: list[Citation] | None = None, **settings: object) -> list[tuple[str, str]]:
    drafts = load({"kind": "sentences", **settings}, "test.yaml").extract(Answer("", answer, TRACE, citations)).claims
    return [(answer[d.start : d.end], " ".join(d.cited_chunk_ids)) for d in drafts]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # Each sentence keeps the references that cover its segment.
        (
            "Apples are red. They are sweet [1][2]. Pears are green. Plums too.",
            [("Apples are red.", "a b"), ("They are sweet", "a b"), ("Pears are green.", ""), ("Plums too.", "")],
        ),
        # A cut in the middle of a sentence stays one: segments come first.
        ("As apples are red [1], pears are green [2].", [("As apples are red", "a"), ("pears are green", "b")]),
        # Abbreviations and numbers end no sentence.
        ("Dr. Smith ate 3.5 apples, e.g. red ones. Then he left.", [
            ("Dr. Smith ate 3.5 apples, e.g. red ones.", ""),
            ("Then he left.", ""),
        ]),
        # A sentence ends at its full stop, so bold that ends later is left out; names in bold brackets end none.
        ("**Apples are red.** Pears are green.", [("Apples are red.", ""), ("Pears are green.", "")]),
        ("It is **adenine (A)**, **thymine (T)**.", [("It is **adenine (A)**, **thymine (T)**.", "")]),
        ("Call `a. B` or <b>so.</b> Yes.", [("Call `a. B` or <b>so.", ""), ("Yes.", "")]),
        # The number of an item is not a sentence. A lead-in inherits no reference.
        ("Do this: 1. Wash it. 2. Eat it [1].", [("Do this:", ""), ("1. Wash it.", "a"), ("2. Eat it", "a")]),
        # Offsets are characters, whatever they weigh.
        ("🍎 sind röt. Ünd sweet [3].", [("🍎 sind röt.", "c"), ("Ünd sweet", "c")]),
        ("苹果是红色的。梨是绿色的[1]。", [("苹果是红色的。", "a"), ("梨是绿色的", "a")]),
        # A cell of a table is one statement.
        ("| a |\n|---|\n| Red. Sweet. [1] |", [("Red. Sweet.", "a")]),
        # A line break alone ends no sentence.
        ("Apples\nare red.", [("Apples\nare red.", "")]),
    ],
)  # fmt: skip
def test_sentences(answer: str, expected: list[tuple[str, str]]) -> None:
    assert claims(answer) == expected


def test_structured_citations_go_to_the_sentences_that_they_overlap() -> None:
    answer = "Apples are red. Pears are green. Fruit is good."
    citations = [Citation(0, 20, ("a",)), Citation(16, 31, ("b",))]
    expected = [("Apples are red.", "a"), ("Pears are green.", "a b"), ("Fruit is good.", "")]
    assert claims(answer, citations) == expected


def test_a_long_segment_is_cut_as_if_read_at_once() -> None:
    sentence = "Apples number {} are red, and so are those of Dr. Smith."
    sentences = [sentence.format(n) for n in range(600)]
    answer = " ".join(sentences)
    assert len(answer) > 5 * WINDOW
    assert [text for text, _ in claims(answer)] == sentences


def test_a_sentence_that_never_ends_is_cut_between_words() -> None:
    answer = "apple " * (3 * WINDOW)
    texts = [text for text, _ in claims(answer)]
    assert " ".join(texts) == answer.strip()


@given(st.text(max_size=300))
def test_nothing_but_references_and_punctuation_is_lost(answer: str) -> None:
    """In an answer without markup, every letter of a segment is in one of its sentences."""
    answer = "".join(c for c in answer if c.isalnum() or c in " .,!?")
    answer = f"x {answer}"  # no markup at the beginning of the only line

    def letters(kind: str) -> str:
        drafts = load({"kind": kind, "citation_style": "none"}, "x").extract(Answer("", answer, TRACE)).claims
        return "".join(c for d in drafts for c in answer[d.start : d.end] if c.isalnum())

    assert letters("sentences") == letters("segments") == "".join(c for c in answer if c.isalnum())
