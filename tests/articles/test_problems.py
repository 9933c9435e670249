"""Each problem with what has it, and with what is near and has not."""

import pytest

from tasks.articles.parts import Document, Part
from tasks.articles.phrases import dangling, forms, leans
from tasks.articles.problems import KINDS, check
from tasks.articles.split import Article, articles

SOUND = "Backups are kept for thirty days in the region of their owner."  # 12 words


def article(text: str = SOUND, title: str = "Retention", page: int | None = None, doc_id: str = "a.md") -> Article:
    parts = [Part(0, "doc", "", page), Part(1, title, text, page)]
    return articles(doc_id, Document("doc", parts), 2)[0]


def kinds(*made: Article, least: int = 5, most: int = 20) -> list[list[str]]:
    return [[p.kind for p in a.problems] for a in check(made, least, most)]


def test_a_sound_article_has_none() -> None:
    assert kinds(article()) == [[]]


@pytest.mark.parametrize(
    ("n", "found"), [(0, ["too_short"]), (4, ["too_short"]), (5, []), (20, []), (21, ["too_long"])]
)
def test_lengths(n: int, found: list[str]) -> None:
    assert kinds(article("word " * n)) == [found]


@pytest.mark.parametrize(
    "phrase",
    [
        "see above",
        "See\nbelow",
        "as described above",
        "listed below",
        "as mentioned earlier",
        "as previously noted",
        "was explained before.",
        "as we have seen",
        "the aforementioned key",
        "the previous section",
        "in the following chapters",
        "the section above",
        "on the previous page",
    ],
)
def test_phrases_that_lean_on_others(phrase: str) -> None:
    assert kinds(article(f"Keep the key safe, {phrase} and so on.")) == [["leans_on_others"]]


@pytest.mark.parametrize(
    "phrase",
    [
        "oversee belowground works",
        "a value above 5",
        "must be defined before use",
        "if the key is already defined",
        "the next step",
        "this section",
        "go to the next page",
        "see [Retention](retention.md)",
    ],
)
def test_phrases_that_do_not(phrase: str) -> None:
    assert kinds(article(f"Keep the key safe, {phrase} and so on.")) == [[]]


TABLE = "\n\n| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("phrase", "shown"),
    [
        ("the following table", TABLE),
        ("The table below", TABLE),
        ("the following size table", "\n\n<table><tr><td>1</td></tr></table>"),
        ("the following figure", "\n\n![sizes](sizes.png)"),
        ("the screenshots above", "<img src='sizes.png'>"),
        ("the following list", "\n\n- 1\n- 2"),
        ("the following code", "\n\n```\nx\n```"),
        ("the snippet below", "\n\n    x = 1"),
        ("the following code", "`4711`"),
    ],
)
def test_what_is_pointed_at_must_be_there(phrase: str, shown: str) -> None:
    text = f"You find all of the sizes in {phrase}."
    assert kinds(article(text)) == [["leans_on_others"]]
    assert kinds(article(text + shown)) == [[]]
    other = "\n\n- 1" if "list" not in phrase else TABLE
    assert kinds(article(text + other)) == [["leans_on_others"]]


def test_in_a_pdf_tables_cannot_be_seen_and_are_believed() -> None:
    text = "You find all of the sizes in the following table."
    assert kinds(article(text, page=3)) == [[]]
    assert kinds(article("You find all sizes here, see above.", page=3)) == [["leans_on_others"]]


def test_a_phrase_is_reported_once_in_lower_case() -> None:
    assert leans("See above. And see  above, and see below.", forms("")) == ["see above", "see below"]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("It also keeps copies.", "It"),
        ("This means that copies are kept.", "This"),
        ("They are kept.", "They"),
        ("**They** are kept.", "They"),
        ("- These are kept.", "These"),
        ("1. Those are kept.", "Those"),
        ("It's kept.", "It's"),
        ("That's why copies are kept.", "That's"),
        ("It is used to keep copies.", "It"),
        ("This option keeps copies.", "This"),
        ("However, copies are kept.", "However"),
        ("In addition, copies are kept.", "In addition"),
        ("The latter is kept.", "The latter"),
        ("Such copies are kept.", "Such"),
    ],
)
def test_starts_that_point_back(start: str, found: str) -> None:
    assert dangling(start) == found
    assert kinds(article(f"{start} For ever and ever and ever.")) == [["dangling_start"]]


@pytest.mark.parametrize(
    "start",
    [
        "This page describes copies.",
        "This quick guide describes copies.",
        "These sections describe copies.",
        "It is possible to keep copies.",
        "It's important to keep copies.",
        "It may be useful to keep copies.",
        "IT staff keeps copies.",
        "Items are kept.",
        "Thistles grow.",
        "However you keep copies, keep them.",
        "Thenceforth copies are kept.",
        "Copies are kept. It also keeps them.",
        "### Deeper\n\nIt also keeps copies.",
        "",
    ],
)
def test_starts_that_do_not(start: str) -> None:
    assert dangling(start) == ""


def test_duplicate_texts_name_each_other_and_ignore_case_space_and_markup() -> None:
    made = [
        article(title="A"),
        article(SOUND.upper().replace(" ", "\n") + "*", "B"),
        article(SOUND + " Not more.", "C"),
    ]
    a, b, c = check(made, 5, 20)
    assert [p.kind for p in a.problems] == [p.kind for p in b.problems] == ["duplicate_text"]
    assert (b.article_id in a.problems[0].reason, a.article_id in b.problems[0].reason) == (True, True)
    assert c.problems == ()


def test_empty_texts_are_no_duplicates() -> None:
    assert kinds(article("", "A"), article("", "B")) == [["too_short"], ["too_short"]]


def test_duplicate_titles_are_found_across_documents() -> None:
    made = [
        article(SOUND + f" {i}", title, doc_id=f"{i}.md")
        for i, title in enumerate(["Overview", "overview", "Others", "OVERVIEW"])
    ]
    checked = check(made, 5, 20)
    assert [[p.kind for p in a.problems] for a in checked] == [["duplicate_title"]] * 2 + [[]] + [["duplicate_title"]]
    assert "and 1 more" in checked[0].problems[0].reason


@pytest.mark.parametrize(("title", "found"), [("", ["empty_title"]), ("—", ["empty_title"]), ("7", []), ("備份", [])])
def test_empty_titles(title: str, found: list[str]) -> None:
    assert kinds(article(title=title)) == [found]
    assert kinds(article(title=title), article(SOUND + " B", title=title, doc_id="b.md"))[0] == (
        found or ["duplicate_title"]
    )


def test_several_problems_stand_in_the_order_of_the_kinds() -> None:
    made = [article("It is kept, see above.", "", doc_id=d) for d in "ab"]
    found = kinds(*made, least=10)
    assert found == [["too_short", "leans_on_others", "dangling_start", "duplicate_text", "empty_title"]] * 2
    assert [k for k in KINDS if k in found[0]] == found[0]
