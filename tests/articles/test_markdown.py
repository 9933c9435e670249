"""Markdown documents: where they are cut, what is a heading, and that no word is lost."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.articles._markdown import parse, read
from tasks.articles.parts import DocumentError
from tasks.articles.split import articles

WORD = re.compile(r"w\d+")


def cuts(text: str) -> list[tuple[int, str, str]]:
    return [(p.level, p.title, p.text) for p in parse(text, "name").parts]


def test_parts_begin_at_headings_of_both_kinds() -> None:
    text = "before\n\n# One\ntext 1\n\nTwo\n---\ntext 2\n\n###### Six ######\ntext 6\n"
    assert cuts(text) == [(0, "name", "before"), (1, "One", "text 1"), (2, "Two", "text 2"), (6, "Six", "text 6")]


def test_a_title_is_words_without_markup() -> None:
    text = "# The *quick* `fox` [jumps](x) \\# over &amp; ![a dog](y) {#anchor}\n\n# Use of {name}"
    assert [title for _, title, _ in cuts(text)[1:]] == ["The quick fox jumps # over & a dog", "Use of {name}"]


def test_what_only_looks_like_a_heading_stays_text() -> None:
    text = "# One\n\n```sh\n# comment\n```\n\n> # quoted\n\n- # in a list\n\n#hashtag\n\n    # indented\n"
    assert cuts(text)[1:] == [(1, "One", text.removeprefix("# One\n\n").rstrip())]


def test_lists_tables_and_code_stay_as_written() -> None:
    body = "    code\n\n| a | b |\n|---|---|\n| ä | 2 |\n\n- x\n  - y"
    assert cuts(f"# Ünï\n\n{body}\n\n# Next") == [(0, "name", ""), (1, "Ünï", body), (1, "Next", "")]


def test_line_ends_of_all_systems_are_the_same() -> None:
    text = "before\n\n# One\ntext\n\n## Two\nmore"
    assert cuts(text) == cuts(text.replace("\n", "\r\n")) == cuts(text.replace("\n", "\r"))


def test_metadata_give_the_title_and_are_no_text() -> None:
    document = parse("---\ntitle: 'Backups:  how'\ntags: [a]\n---\n\nBefore.\n\n# One", "name")
    assert (document.title, document.parts[0].title, document.parts[0].text) == (
        "Backups: how",
        "Backups: how",
        "Before.",
    )


@pytest.mark.parametrize("metadata", ["tags: [a]", "title:", "title: ''"])
def test_metadata_without_a_title_leave_the_name(metadata: str) -> None:
    assert parse(f"---\n{metadata}\n---\ntext", "name").title == "name"


@pytest.mark.parametrize("text", ["---\nJust text.\n---\nmore", "---\na: b: c\n---\nmore"])
def test_text_between_rules_is_no_metadata(text: str) -> None:
    document = parse(text, "name")
    assert document.title == "name"
    assert document.parts[0].text == text


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("\ufeff# Öne\ntext".encode())
    assert read(tmp_path / "a.md").parts[1][:3] == (1, "Öne", "text")


def test_a_file_that_is_not_utf_8_is_reported_with_its_byte(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"secret gr\xfcn")
    with pytest.raises(DocumentError, match=r"not UTF-8 \(byte 9\)") as raised:
        read(tmp_path / "a.md")
    assert "secret" not in str(raised.value)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Markdown of all sorts of blocks; every word of it has a number of its own."""
    numbers = iter(range(10_000))

    def words(n: int) -> str:
        return " ".join(f"w{next(numbers)}" for _ in range(n))

    blocks = []
    for kind in draw(
        st.lists(st.sampled_from(["atx", "setext", "p", "list", "code", "fence", "table", "quote", "html", "rule"]))
    ):
        one, two = words(draw(st.integers(1, 3))), words(1)
        blocks.append(
            {
                "atx": "#" * draw(st.integers(1, 6)) + f" *{one}* `{two}`",
                "setext": f"{one} **{two}**\n" + draw(st.sampled_from(["===", "---"])),
                "p": f"{one}\n[{two}](#)",
                "list": f"- {one}\n  - # {two}\n1. {words(1)}",
                "code": f"    # {one}\n\n    {two}",
                "fence": f"```w{next(numbers)}\n# {one}\n{two}\n```",
                "table": f"| {one} | {two} |\n|---|---|\n| {words(1)} | {words(1)} |",
                "quote": f"> ## {one}\n> {two}",
                "html": f"<div title='{one}'>\n\n{two}\n\n</div>",
                "rule": "---",
            }[kind]
        )
    return draw(st.sampled_from(["\n\n", "\n"])).join(blocks)


@given(documents(), st.integers(1, 6))
def test_every_word_is_in_the_articles_once_and_in_order(text: str, depth: int) -> None:
    """A word is in a text, or in the heading path of an article below that heading; texts keep the order."""
    made = articles("doc", parse(text, "name"), depth)
    paths = {word for a in made for title in a.headings for word in WORD.findall(title)}
    texts = [word for a in made for word in WORD.findall(a.text)]
    assert sorted(set(texts) | paths) == sorted(set(WORD.findall(text)))
    assert len(texts) == len(set(texts))
    assert not set(texts) & paths
    assert texts == sorted(texts, key=WORD.findall(text).index)


@given(st.text(st.sampled_from("#-=>~|*_.0a \t\n\r")))
def test_whatever_the_lines_are_each_letter_is_kept_once(text: str) -> None:
    """Signs that make headings, rules, lists, quotations, tables and code; none that makes links or HTML."""
    parts = parse(text, "").parts
    assert sum(p.text.count("a") + p.title.count("a") for p in parts) == text.count("a")
