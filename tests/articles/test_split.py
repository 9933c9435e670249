"""Articles from parts: where they are cut, what they are called, and ids that outlast edits."""

import hashlib
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.articles._markdown import parse
from tasks.articles.parts import Document, Part
from tasks.articles.split import Article, articles, count

GUIDE = """Before everything.

# Backups

What they are.

## Retention

Thirty days.

### By region

Longer in the EU.

## Restore

By hand.

# Support

## Hours

Nine to five.
"""


def cut(text: str, depth: int = 2, doc_id: str = "guide.md") -> list[Article]:
    return articles(doc_id, parse(text, "guide"), depth)


def ids(text: str, depth: int = 2) -> dict[tuple[str, ...], str]:
    return {a.headings: a.article_id for a in cut(text, depth)}


def test_depth_2_cuts_at_levels_1_and_2_and_keeps_deeper_headings_in_the_text() -> None:
    assert [(a.title, a.headings, a.text) for a in cut(GUIDE)] == [
        ("guide", (), "Before everything."),
        ("Backups", ("Backups",), "What they are."),
        ("Retention", ("Backups", "Retention"), "Thirty days.\n\n### By region\n\nLonger in the EU."),
        ("Restore", ("Backups", "Restore"), "By hand."),
        ("Hours", ("Support", "Hours"), "Nine to five."),  # "Support" has no text of its own: only in the path
    ]


@pytest.mark.parametrize(
    ("depth", "titles"),
    [
        (1, ["guide", "Backups", "Support"]),
        (3, ["guide", "Backups", "Retention", "By region", "Restore", "Hours"]),
        (6, ["guide", "Backups", "Retention", "By region", "Restore", "Hours"]),
    ],
)
def test_other_depths(depth: int, titles: list[str]) -> None:
    assert [a.title for a in cut(GUIDE, depth)] == titles


def test_a_heading_that_nothing_follows_is_an_article_without_text() -> None:
    """A person should see it: it is no chapter above others, it is unfinished."""
    assert [(a.title, a.text) for a in cut("# One\n\n# Two\ntext\n\n## Three")] == [
        ("One", ""),
        ("Two", "text"),
        ("Three", ""),
    ]


def test_levels_may_be_skipped_and_begin_anywhere() -> None:
    made = cut("## A\na\n\n# B\nb\n\n### C\nc\n\n## D\nd", depth=3)
    assert [a.headings for a in made] == [("A",), ("B",), ("B", "C"), ("B", "D")]


def test_ids_stay_when_texts_are_edited_and_sections_are_added_moved_or_removed() -> None:
    before = ids(GUIDE)
    edited = GUIDE.replace("Thirty days.", "Sixty days, and *more*.").replace("Before everything.", "Preface.")
    assert ids(edited) == before
    assert ids(GUIDE.replace("## Restore", "## New\n\ntext\n\n## Restore")).items() > before.items()
    assert ids(GUIDE.replace("# Support\n", "# Support\n\nNow with text.\n")).items() > before.items()
    assert ids(GUIDE.replace("## Restore\n\nBy hand.\n", "")).items() < before.items()
    assert ids(GUIDE.replace("### By region", "### By country")) == before  # inside an article at this depth
    assert ids(GUIDE.replace("# Backups", "# *Backups*", 1)) == before  # emphasis is no word


def test_ids_change_with_the_document_and_with_every_heading_above() -> None:
    before = ids(GUIDE)
    renamed = ids(GUIDE.replace("# Backups", "# Copies", 1))
    assert renamed["Copies", "Retention"] != before["Backups", "Retention"]
    assert not {a.article_id for a in cut(GUIDE, doc_id="other.md")} & set(before.values())


def test_ids_are_these_in_every_release() -> None:
    """Whoever has annotated sources by id keeps them: BLAKE2b of the length-prefixed parts, 64 bits."""
    parts = ["2", "guide.md", "Backups", "Retention", "1"]
    digest = hashlib.blake2b(
        b"".join(len(p.encode()).to_bytes(8, "little") + p.encode() for p in parts), digest_size=8
    ).hexdigest()
    assert ids(GUIDE)["Backups", "Retention"] == digest


def test_equal_paths_are_reported_apart_by_their_order() -> None:
    text = "# A\n\n## Notes\n1\n\n## Notes\n2\n\n# B\n\n## Notes\n3\n"
    made = cut(text)
    assert [a.headings for a in made] == [("A", "Notes"), ("A", "Notes"), ("B", "Notes")]
    assert len({a.article_id for a in made}) == 3
    alone = cut(text.replace("## Notes\n2\n\n", ""))
    assert [a.article_id for a in alone] == [made[0].article_id, made[2].article_id]


def test_an_ordinal_is_not_taken_for_a_heading() -> None:
    made = cut("# A\n1\n\n# A\n2\n\n## 2\n3\n\n## 1\n4", depth=2)
    assert len({a.article_id for a in made}) == 4


def test_accents_of_one_and_of_two_characters_are_the_same() -> None:
    assert (
        cut("# Caf\u00e9\ntext", doc_id="\u00fc.md")[0].article_id
        == cut("# Cafe\u0301\ntext", doc_id="u\u0308.md")[0].article_id
    )


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from("AB"), st.sampled_from(["", "text"])), max_size=12),
    st.integers(1, 4),
)
def test_ids_never_meet_inside_a_document(sections: list[tuple[int, str, str]], depth: int) -> None:
    parts = [Part(0, "doc", "before"), *(Part(*s) for s in sections)]
    made = articles("doc.md", Document("doc", parts), depth)
    assert len({a.article_id for a in made}) == len(made)
    # Another edit of each text changes no id.
    edited = [p._replace(text=p.text and "edited") for p in parts]
    assert [a.article_id for a in articles("doc.md", Document("doc", edited), depth)] == [a.article_id for a in made]


def test_a_document_without_headings_to_cut_at_says_so() -> None:
    for text in ("Only text.", "Only text.\n\n### Too deep\n\nmore"):
        (made,) = cut(text)
        assert [p.kind for p in made.problems] == ["no_headings"]
        assert made.title == "guide"
    assert [a.problems for a in cut("# One\ntext")] == [()]
    assert [a.problems for a in cut("text\n\n# One\ntext")] == [(), ()]


def test_an_uncertain_start_says_so() -> None:
    parts = [Part(0, "d", ""), Part(1, "A", "text", 3, certain=False), Part(1, "B", "text", 3)]
    a, b = articles("d.pdf", Document("d", parts), 2)
    assert [(p.kind, "page 3" in p.reason) for p in a.problems] == [("uncertain_start", True)]
    assert b.problems == ()


def test_words_are_counted_without_markup() -> None:
    assert count("- one *two*\n\n| three | 4 |\n| --- | --- |\n\n> five") == 5
    assert count("") == 0
    # 70 ideographs at half a word each, and a little for the length of the run, as in judges' windows.
    assert 35 <= count("備份保留三十天。" * 10) < 45


@given(st.text(string.printable))
def test_no_text_has_more_words_than_characters(text: str) -> None:
    assert 0 <= count(text) <= len(re.findall(r"\S", text))
