"""Citation styles: what is a reference, and which chunks it names."""

import pytest

from tasks.core.types import Chunk
from tasks.extractors.cut._resolve import Resolver
from tasks.extractors.cut.citations import CutSettings, Finder
from tasks.extractors.cut.markdown import parse


def chunks(*ids: str) -> list[Chunk]:
    return [Chunk(i, "text") for i in ids]


ABC = chunks("a", "b", "c")  # numbers go by position
DOCS = [
    Chunk("c1", "t", doc_id="handbook/doc-3.md", title="Leave policy"),
    Chunk("c2", "t", doc_id="handbook/doc-3.md"),
    Chunk("c3", "t", doc_id="https://example.org/travel.html", title="Travel policy"),
]


def found(answer: str, trace: list[Chunk], **settings: object) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Every reference of an answer: as written, the chunks, and what dangles."""
    finder = Finder(CutSettings.model_validate(settings))
    document = parse(answer)
    resolver = Resolver(trace, document.notes)
    references = [r for block in document.blocks for r in finder.find(answer, block, resolver)]
    return [(answer[r.start : r.end], r.ids, r.dangling) for r in references]


@pytest.mark.parametrize(
    ("answer", "trace", "expected"),
    [
        ("x [1]", ABC, ("[1]", ("a",), ())),
        ("x [1, 2]", ABC, ("[1, 2]", ("a", "b"), ())),
        ("x [1-3]", ABC, ("[1-3]", ("a", "b", "c"), ())),
        ("x [1–3]", ABC, ("[1–3]", ("a", "b", "c"), ())),
        ("x [1]–[3]", ABC, ("[1]–[3]", ("a", "b", "c"), ())),
        ("x [2-4]", ABC, ("[2-4]", ("b", "c"), ("4",))),
        ("x [7]", ABC, ("[7]", (), ("7",))),
        ("x [1-900]", ABC, ("[1-900]", (), ("1-900",))),  # no list of chunks is that long: not expanded
        ("x [doc-7]", chunks("doc-7"), ("[doc-7]", ("doc-7",), ())),
        ("x [Doc-7, doc-8]", chunks("doc-7", "doc-8"), ("[Doc-7, doc-8]", ("doc-7", "doc-8"), ())),
        ("x [doc-9]", chunks("doc-7"), ("[doc-9]", (), ("doc-9",))),
        ("x [kb:12]", chunks("kb:7"), ("[kb:12]", (), ("kb:12",))),  # shaped like the trace's ids
        ("x [doc-2]", ABC, ("[doc-2]", (), ("doc-2",))),  # an id that is unknown, not the number 2
        ("x [Source 2]", ABC, ("[Source 2]", ("b",), ())),
        ("x (doc-3.md)", DOCS, ("(doc-3.md)", ("c1", "c2"), ())),  # all chunks of the document
        ("x (DOC-3)", DOCS, ("(DOC-3)", ("c1", "c2"), ())),
        ("x (doc-4.md)", DOCS, ("(doc-4.md)", (), ("doc-4.md",))),
        ("x [travel.html]", DOCS, ("[travel.html]", ("c3",), ())),
        ("x [ID: 17]", chunks("17", "18"), ("[ID: 17]", ("17",), ())),
        ("x [ID: 19]", chunks("17", "18"), ("[ID: 19]", (), ("19",))),
        ("x[^2]", ABC, ("[^2]", ("b",), ())),
        ("x[^2^]", ABC, ("[^2^]", ("b",), ())),
        ("x【2†source】", ABC, ("【2†source】", ("b",), ())),
        ("x【4:0†travel.html】", DOCS, ("【4:0†travel.html】", ("c3",), ())),
        ("x【9†source】", ABC, ("【9†source】", (), ("9",))),
        ("word²", ABC, ("²", ("b",), ())),
        ("a word.¹²", ABC, ("¹²", ("a", "b"), ())),
        ("a word<sup>1,3</sup>", ABC, ("<sup>1,3</sup>", ("a", "c"), ())),
        ("m<sup>[1]</sup>", ABC, ("<sup>[1]</sup>", ("a",), ())),
        ("x [1](https://example.org)", ABC, ("[1](https://example.org)", ("a",), ())),
        ("x [1]\n\n[1]: https://example.org", ABC, ("[1]", ("a",), ())),  # a link to Markdown, a reference to us
    ],
)
def test_styles(answer: str, trace: list[Chunk], expected: tuple[str, tuple[str, ...], tuple[str, ...]]) -> None:
    assert found(answer, trace) == [expected]


@pytest.mark.parametrize(
    "answer",
    [
        "see [the report](https://example.org/1)",
        "- [x] done\n- [ ] open",
        "use `a[1]` here",
        "in [2019] it rained",
        "a probability in [0, 1]",
        "the liquid [EMIM][TfO]",
        "see (2019) and (1) and (e.g. this)",
        "an area of 5 m² or 10³ km²",
        "sin² and m<sup>2</sup>",
        "【重要】 read this",
        "![1](x.png)",
    ],
)
def test_lookalikes_are_no_references(answer: str) -> None:
    assert found(answer, ABC) == []


def test_without_chunks_every_reference_dangles() -> None:
    assert found("x [1] y [doc-2] z (doc-3.md)", []) == [
        ("[1]", (), ("1",)),
        ("[doc-2]", (), ("doc-2",)),
        ("(doc-3.md)", (), ("doc-3.md",)),
    ]


def test_numbers_go_by_chunk_id_where_chunk_ids_are_numbers() -> None:
    trace = [Chunk("2", "t", rank=1), Chunk("4", "t", rank=2)]
    assert found("x [1] y [2]", trace) == [("[1]", (), ("1",)), ("[2]", ("2",), ())]


def test_numbers_go_by_rank_before_position() -> None:
    trace = [Chunk("a", "t", rank=2), Chunk("b", "t", rank=1)]
    assert found("x [1] y [3]", trace) == [("[1]", ("b",), ()), ("[3]", (), ("3",))]


def test_long_numbers_are_references_where_chunk_ids_are_as_long() -> None:
    assert found("x [1003]", chunks("1001", "1002")) == [("[1003]", (), ("1003",))]


def test_footnotes_name_what_their_definitions_name() -> None:
    answer = "a[^1] b[^2] c[^x]\n\n[^1]: See the *Travel policy*, p. 3\n[^2]: doc-3.md\n[^x]: Unknown book\n"
    assert found(answer, DOCS) == [("[^1]", ("c3",), ()), ("[^2]", ("c1", "c2"), ()), ("[^x]", (), ("x",))]


def test_a_style_finds_only_itself() -> None:
    answer = "x [1] y (doc-3.md) z[^1]"
    assert [r[0] for r in found(answer, DOCS, citation_style="numeric")] == ["[1]"]
    assert [r[0] for r in found(answer, DOCS, citation_style="file")] == ["(doc-3.md)"]
    assert [r[0] for r in found(answer, DOCS, citation_style="footnote")] == ["[^1]"]
    assert found(answer, DOCS, citation_style="none") == []


def test_an_apps_own_style_is_taken_at_its_word_and_goes_first() -> None:
    styles = {"braces": r"\{\{(?P<ref>[^{}]+)\}\}"}
    answer = "x {{a, c}} y {{nothing here}} z [1]"
    own = [("{{a, c}}", ("a", "c"), ()), ("{{nothing here}}", (), ("nothing here",))]
    assert found(answer, ABC, citation_style="braces", styles=styles) == own
    assert found(answer, ABC, styles=styles) == [*own, ("[1]", ("a",), ())]
