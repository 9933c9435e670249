"""The extractor `segments`, rule by rule (docs/methods.md#claims). A claim is written as (text, chunks, dangling)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.types import Answer, Chunk, Citation
from tasks.extractors import load

TRACE = [Chunk("a", "t"), Chunk("b", "t"), Chunk("c", "t")]  # [1], [2], [3]
Claim = tuple[str, str, str]


def claims(
    answer: str,
    trace: list[Chunk] | None = None,
    citations: list[Citation] | None = None,
    **settings: object,
) -> list[Claim]:
    extractor = load({"kind": "segments", **settings}, "test.yaml")
    found = extractor.extract(Answer("", answer, TRACE if trace is None else trace, citations))
    return [(answer[d.start : d.end], " ".join(d.cited_chunk_ids), " ".join(d.dangling)) for d in found.claims]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # A segment is the text that one run of references covers; what follows the last one is uncited.
        (
            "Apples are red [1]. Pears are green [2], and plums are blue [3]. Fruit is good.",
            [
                ("Apples are red", "a", ""),
                ("Pears are green", "b", ""),
                ("and plums are blue", "c", ""),
                ("Fruit is good.", "", ""),
            ],
        ),
        # Consecutive references are one run and never leave a claim of punctuation.
        ("Apples are red [1][2], [3].", [("Apples are red", "a b c", "")]),
        ("Apples are red [1] and [2]. Pears too.", [("Apples are red", "a b", ""), ("Pears too.", "", "")]),
        ("Apples are red [1]. [2]; [3]!", [("Apples are red", "a b c", "")]),
        (
            "Apples are red (see [1]; cf. [2], p. 7). Pears too.",
            [("Apples are red", "a b", ""), ("Pears too.", "", "")],
        ),
        ("Apples are red. Source: [1]", [("Apples are red.", "a", "")]),
        # A reference behind the full stop belongs to the text before it.
        ("Apples are red. [1] Pears are green.", [("Apples are red.", "a", ""), ("Pears are green.", "", "")]),
        # A reference at the beginning covers what follows, up to the next run.
        ("[1] Apples are red.", [("Apples are red.", "a", "")]),
        ("[1] Apples are red. [2] Pears are green.", [("Apples are red.", "a", ""), ("Pears are green.", "b", "")]),
        ("- [1] Apples are red\n- Pears [2]", [("Apples are red", "a", ""), ("Pears", "b", "")]),
        ("[1] Apples are red [2]. Pears too.", [("Apples are red", "a b", ""), ("Pears too.", "", "")]),
        # A reference that is a word of its sentence covers the sentence.
        (
            "According to [1], apples are red. Pears are green [2].",
            [("According to [1], apples are red.", "a", ""), ("Pears are green", "b", "")],
        ),
        # One in the middle of a clause does not cut it: "are red" would say nothing.
        ("As stated in [1], apples [2] are red.", [("As stated in [1], apples [2] are red.", "a b", "")]),
        ("This was found in a study [1]. Pears too.", [("This was found in a study", "a", ""), ("Pears too.", "", "")]),
        # A reference that was put into the number of an item covers the item.
        (
            "1[1]. Analyze the effects [2]. Evaluate them.",
            [("Analyze the effects", "a b", ""), ("Evaluate them.", "", "")],
        ),
        # A number can be the whole claim.
        ("42 [1].", [("42", "a", "")]),
        # A reference to a chunk that is not in the trace is kept.
        ("Apples are red [1][7].", [("Apples are red", "a", "7")]),
        # Paragraphs and items are never joined; a lead-in is a segment of its own.
        (
            "Two fruits:\n\n1. Apples [1]\n   - red ones [2]\n2. Pears\n\nEnough.",
            [
                ("Two fruits:", "", ""),
                ("Apples", "a", ""),
                ("red ones", "b", ""),
                ("Pears", "", ""),
                ("Enough.", "", ""),
            ],
        ),
        ("• Apples [1]\n• Pears", [("Apples", "a", ""), ("Pears", "", "")]),
        # A block of references alone belongs to the text above it.
        ("Apples are red.\n\n[1]\n\nPears.", [("Apples are red.", "a", ""), ("Pears.", "", "")]),
        # A cell of a table is a statement, but for the label of its row, whose references hold for the row.
        (
            "| fruit | color |\n|---|---|\n| apple [1] | red [2] |\n| pear | green |",
            [("red", "a b", ""), ("green", "", "")],
        ),
        # Code, rules, images and footnote definitions give nothing; block quotes and HTML do.
        (
            "```\na[1]\n```\n\n---\n\n![x](y.png)\n\n<div>Pears.</div>\n\n> Apples[^1]\n\n[^1]: A book",
            [("Pears.", "", ""), ("Apples", "a", "")],
        ),
        ("![apples](x.png) [1] Apples.", [("Apples.", "a", "")]),
        # Emphasis that a cut splits leaves nothing at the edges.
        ("**Apples are red [1].** Pears too.", [("Apples are red", "a", ""), ("Pears too.", "", "")]),
        ("Apples **[1]**. *Pears* too.", [("Apples", "a", ""), ("*Pears* too.", "", "")]),
        ("**Apples**: *red* [1]", [("**Apples**: *red*", "a", "")]),
        ("Apples [1]<br>Pears [2]", [("Apples", "a", ""), ("Pears", "b", "")]),
        # Only what is punctuation goes: numbers, names and quotations stay.
        ("It was cold [1]. -5 °C in May [2].", [("It was cold", "a", ""), ("-5 °C in May", "b", "")]),
        ('He said "no" [1]. "Yes" came later.', [('He said "no"', "a", ""), ('"Yes" came later.', "", "")]),
        # Other scripts.
        ("苹果是红色的[1]。梨是绿色的。", [("苹果是红色的", "a", ""), ("梨是绿色的。", "", "")]),
        ("التفاح أحمر [1]. الكمثرى", [("التفاح أحمر", "a", ""), ("الكمثرى", "", "")]),
        # Nothing is claimed.
        ("", []),
        ("[1] [2]", []),
        ("... !? **", []),
    ],
)
def test_segments(answer: str, expected: list[Claim]) -> None:
    assert claims(answer) == expected


APPLES = [("Apples are red", "a", ""), ("Pears are green", "b", "")]


@pytest.mark.parametrize(
    "tail",
    [
        "## Sources\n\n- Apple Book\n- Pear Book",
        "**References**\n\n1. Smith: Apples. 2020.\n2. Jones: Pears. 2021.",
        "Sources:\n\n[1] Apple Book\n\n[2] Pear Book",
        "Sources: [1], [2]",
        "Quellen:\n- Apfelbuch\n- Birnenbuch",
        "参考文献：\n\n- Apple Book",
        "Sources:\n[1] Apple Book, 2020.\n[2] Pear Book, 2021.",
        "[1] https://example.org/apples\n[2] https://example.org/pears",
        "- [1] [Apple Book](https://example.org/a)\n- [2] Pear Book, https://example.org/p",
        "- [Apple Book](https://example.org/a)\n- <https://example.org/p>",
        "[1] Apple Book\n[2] Pear Book",  # both were cited above
        "[1]: https://example.org/apples\n[2]: https://example.org/pears",
        "---\n\n### Sources:\n[1] Apple Book\n",
    ],
)
def test_a_trailing_list_of_sources_is_dropped(tail: str) -> None:
    assert claims(f"Apples are red [1]. Pears are green [2].\n\n{tail}") == APPLES


@pytest.mark.parametrize(
    ("tail", "more"),
    [
        ("- Plums are blue [3]", [("Plums are blue", "c", "")]),
        ("- [3] Plums are blue", [("Plums are blue", "c", "")]),  # nothing above cites it: the item itself does
        ("Sources of error are many [3].", [("Sources of error are many", "c", "")]),
        (
            "## References\n\nAsk two managers for a letter [3].",
            [("References", "", ""), ("Ask two managers for a letter", "c", "")],
        ),
        ("## Sources\n\n- Apple Book\n\nIn short, eat fruit.", [("In short, eat fruit.", "", "")]),
    ],
)
def test_what_follows_is_no_list_of_sources(tail: str, more: list[Claim]) -> None:
    assert claims(f"Apples are red [1]. Pears are green [2].\n\n{tail}") == APPLES + more


def test_structured_citations_cover_the_sentences_that_they_overlap() -> None:
    answer = "Apples are red. Pears are green. Fruit is good."
    pears = answer.index("Pears")
    citations = [Citation(0, 6, ("a",)), Citation(pears, pears + 5, ("b", "zzz"))]
    expected = [("Apples are red.", "a", ""), ("Pears are green.", "b", "zzz"), ("Fruit is good.", "", "")]
    assert claims(answer, citations=citations) == expected  # `auto` takes them where there are any
    assert claims(answer, citations=citations, citation_style="structured") == expected
    assert claims(answer, citations=citations, citation_style="numeric") == [(answer, "", "")]
    assert claims(answer, citations=[], citation_style="structured") == [(answer, "", "")]


def test_structured_citations_of_the_mark_cover_the_text_before_it() -> None:
    answer = "Apples are red [7]. Pears are green."
    start = answer.index("[7]")
    assert claims(answer, citations=[Citation(start, start + 3, ("b",))]) == [
        ("Apples are red", "b", ""),
        ("Pears are green.", "", ""),
    ]


def test_without_a_style_references_are_text() -> None:
    assert claims("Apples [1]. Pears [2].", citation_style="none") == [("Apples [1]. Pears [2].", "", "")]


FRAGMENTS = st.sampled_from([
    "[1]", "[2]", "[7]", "[1-3]", "[doc-9]", "(x.md)", "[^1]", "【1†s】", "¹", "<sup>2</sup>", "[1](u)", "[t](u)",
    "Apples are red", "word", "7", "苹果", "تفاح", "e\u0301", "ß", "\ud800", "\0", "Sources:", "see", "according to",
    "\n", "\n\n", "\n- ", "\n1. ", "\n> ", "\n# ", "\n---\n", "\n```\n", "\n    ", "\n|a|b|\n|-|-|\n|", "|", "\r\n",
    " ", ". ", ".", ", ", "; ", "**", "*", "_", "`", "<b>", "</b>", "<br>", "<!--", "-->", "![i](u)", "(", ")", "[",
    "]", '"', "\\", "&amp;", "• ", "[^1]: ", "[1]: ", "1[2]. ", "- ", "~",
])  # fmt: skip
ANSWERS = st.one_of(st.text(max_size=200), st.lists(FRAGMENTS, max_size=40).map("".join))


def check_spans(answer: str, kind: str, citations: list[Citation] | None = None) -> None:
    before = 0
    for draft in load({"kind": kind}, "x").extract(Answer("", answer, TRACE, citations)).claims:
        text = answer[draft.start : draft.end]
        assert before <= draft.start < draft.end <= len(answer)
        assert text == text.strip()
        assert any(c.isalnum() for c in text)
        assert set(draft.cited_chunk_ids) <= {"a", "b", "c"}
        before = draft.end


@pytest.mark.parametrize("kind", ["segments", "sentences"])
@given(answer=ANSWERS)
def test_spans_are_exact_ordered_apart_and_hold_text(answer: str, kind: str) -> None:
    check_spans(answer, kind)


@given(
    ANSWERS, st.lists(st.builds(Citation, st.integers(0, 250), st.integers(0, 250), st.just(("a", "q"))), max_size=4)
)
def test_structured_spans_of_any_kind_do_no_harm(answer: str, citations: list[Citation]) -> None:
    check_spans(answer, "segments", citations)
    drafts = load({"kind": "segments"}, "x").extract(Answer("", answer, TRACE, citations)).claims
    if drafts and citations:  # no citation is lost as long as there is a claim
        assert any("a" in d.cited_chunk_ids for d in drafts)
        assert any("q" in d.dangling for d in drafts)


WORDS = st.sampled_from(["Apples", "are", "red", "and", "**green**", "*in* May", "Sources say", "x.", "Yes,"])
MARKS = st.sampled_from(["[1]", "[2]", "[8]", "[doc-9]", "[^4]", "【5†s】", "[6][1]", "(see [3])"])
PIECES = st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), MARKS), min_size=1, max_size=6)


@given(st.lists(PIECES, min_size=1, max_size=4), st.sampled_from([" ", ". ", ", ", "\n"]))
def test_every_reference_beside_text_ends_up_in_a_claim(paragraphs: list[list[tuple[str, str]]], glue: str) -> None:
    """Text before every reference, so each covers some: none may be lost, known or not."""
    answer = "\n\n".join(glue.join(f"{words} {mark}" for words, mark in pieces) for pieces in paragraphs)
    names = {"[1]": "a", "[2]": "b", "(see [3])": "c", "[8]": "8", "[doc-9]": "doc-9", "[^4]": "4", "【5†s】": "5"}
    used = {name for pieces in paragraphs for _, m in pieces for name in ({"6", "a"} if m == "[6][1]" else {names[m]})}
    kept = set(" ".join(f"{ids} {dangling}" for _, ids, dangling in claims(answer)).split())
    assert kept == used


@pytest.mark.parametrize(
    "unit",
    [
        "[", "[1", "(a ", "> ", "- ", "**a [1]** ", "<b>a</b> [1] ", "![a](b) [1] ", "`a[1]` b [2] ", "a[^1] ", "a¹ ",
        "\0a [1] ", "苹果[1]。", "• a [1]\n", "Sources:\n", "- [1] a\n", "according to [1] ", '"a. ', "a\n\n[1]\n\n",
        "x ", "1. ", "|a", "[a](b", "www.", "* ", "\\[", "【",
    ],
)  # fmt: skip
def test_the_longest_answers_take_no_time_to_speak_of(unit: str) -> None:
    """200,000 characters, which is what the gate lets through, take well under a second where time is linear.

    With the square of the length it would be minutes. `sentences` does all that `segments` does, and more.
    """
    answer = unit * (200_000 // len(unit))
    extractor = load({"kind": "sentences"}, "x")
    start = time.process_time()
    extractor.extract(Answer("", answer, TRACE))
    assert time.process_time() - start < 8
