"""Markdown: which text stands in which block, and where exactly."""

import pytest

from tasks.extractors.cut.markdown import parse, plain_text


def texts(answer: str) -> list[tuple[str, str]]:
    return [(b.kind, answer[b.start : b.end]) for b in parse(answer).blocks]


def test_paragraphs_items_quotes_and_headings_are_blocks() -> None:
    answer = "# Title\n\nOne.\n\n- two\n  - three\n- four\n\n  five\n\n> six\n\nseven"
    assert texts(answer) == [
        ("heading", "Title"),
        ("paragraph", "One."),
        ("item", "two"),
        ("item", "three"),
        ("item", "four"),
        ("item", "five"),
        ("paragraph", "six"),
        ("paragraph", "seven"),
    ]


@pytest.mark.parametrize(
    "nothing",
    [
        "```\nx = a[1]\n```",
        "    x = a[1]\n    y = {}",
        "---",
        "***",
        "![a chart of apples](x.png)",
        "<!-- a comment -->",
        "<script>\nlet x = 1\n</script>",
        "[^1]: Apples, 2020.",
        "[1]: https://example.org",
    ],
)
def test_what_carries_no_claim_by_its_form_gives_no_block(nothing: str) -> None:
    assert texts(f"Before.\n\n{nothing}\n\nAfter.") == [("paragraph", "Before."), ("paragraph", "After.")]


def test_cells_are_blocks_with_their_places() -> None:
    blocks = parse("| fruit | color |\n|---|---|\n| apple | |\n| plum | blue |").blocks
    assert [(b.kind, b.place) for b in blocks] == [
        ("head", (0, 0)),
        ("head", (0, 1)),
        ("cell", (1, 0)),
        ("cell", (2, 0)),
        ("cell", (2, 1)),
    ]
    assert len({b.group for b in blocks}) == 1


def test_a_sentence_underlined_with_dashes_is_a_paragraph_and_a_short_title_is_not() -> None:
    assert texts("Apples are red.\n---\n\nApples\n---") == [("paragraph", "Apples are red."), ("heading", "Apples")]


def test_indented_prose_is_text() -> None:
    assert texts("a\n\n    Apples can be red or green in autumn.") == [
        ("paragraph", "a"),
        ("paragraph", "Apples can be red or green in autumn."),
    ]


def test_blocks_of_one_list_share_a_group() -> None:
    groups = [b.group for b in parse("a\n\n- b\n  - c\n- d\n\ne").blocks]
    assert groups[1] == groups[2] == groups[3]
    assert len(set(groups)) == 3


def test_offsets_are_characters() -> None:
    answer = "Äpfel 🍎 sind **röt** `ö[1]`.\n\n- 苹果\n- x"
    blocks = parse(answer).blocks
    assert [answer[b.start : b.end] for b in blocks] == ["Äpfel 🍎 sind **röt** `ö[1]`.", "苹果", "x"]
    assert [answer[start:end] for start, end in blocks[0].code] == ["`ö[1]`"]
    opening, closing = blocks[0].marks
    assert (opening.start, opening.end) == (answer.index("**"), answer.index("**") + 2)
    assert opening.partner == closing.start == answer.index("** `")


def test_lone_surrogates_and_nul_do_no_harm() -> None:
    answer = "a\ud800b \0 ü\n\n- c"
    assert texts(answer) == [("paragraph", "a\ud800b \0 ü"), ("item", "c")]


def test_footnote_definitions_are_handed_out() -> None:
    assert parse("x[^a]\n\n[^a]: see *doc-3.md*\n").notes == {"a": "see *doc-3.md*"}


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("Apples are\n red.", "Apples are red."),
        ("**Apples** are _red_.", "Apples are red."),
        ("the [report](https://example.org/x) and ![alt](y.png) `a[1]`", "the report and a[1]"),
        ("2023. It was *dry*.", "2023. It was dry."),  # not item number 2023 of a list
        ("# of apples", "# of apples"),
        ("quoted\n> twice *over*", "quoted twice over"),
        ("10<sup>5</sup> and H<sub>2</sub>O<br>end <!-- x -->", "10^5 and H2O end"),
        ("if x<y and z>w", "if x<y and z>w"),  # no tag of HTML
        ("a * b &amp; c \\[1\\]", "a * b & c [1]"),
        ("", ""),
    ],
)
def test_plain_text(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain
