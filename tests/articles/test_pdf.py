"""PDF documents, written by ReportLab and pypdf: pages' text, cut at the outline."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from tasks.articles._pdf import cut, read
from tasks.articles.parts import DocumentError
from tasks.articles.split import articles

PAGES = [
    ["Before everything.", "1. Backups", "Kept for thirty days."],
    ["Still about backups.", "By region", "Longer in the EU."],
    ["Support", "Nine to five."],
]
OUTLINE = [("Backups", 0, 0), ("By region", 1, 1), ("Support", 2, 0)]  # title, page, depth


def write(
    path: Path, pages: Sequence[Sequence[str]], outline: Sequence[tuple[str, int, int]] = (), title: str = ""
) -> Path:
    canvas = Canvas(str(path))
    if title:
        canvas.setTitle(title)
    for i, lines in enumerate(pages):
        for j, line in enumerate(lines):
            canvas.drawString(72, 760 - 20 * j, line)
        for k, (name, page, depth) in enumerate(outline):
            if page == i:
                canvas.bookmarkPage(f"at-{k}")
                canvas.addOutlineEntry(name, f"at-{k}", depth)
        canvas.showPage()
    canvas.save()
    return path


def test_the_text_is_cut_where_the_outline_s_headings_stand(tmp_path: Path) -> None:
    document = read(write(tmp_path / "a.pdf", PAGES, OUTLINE, "Handbook"))
    assert document.title == "Handbook"
    assert [tuple(p) for p in document.parts] == [
        (0, "Handbook", "Before everything.", 1, True),
        (1, "Backups", "Kept for thirty days.\n\nStill about backups.", 1, True),
        (2, "By region", "Longer in the EU.", 2, True),
        (1, "Support", "Nine to five.", 3, True),
    ]


def test_without_an_outline_it_is_one_article_that_says_so(tmp_path: Path) -> None:
    (made,) = articles("a.pdf", read(write(tmp_path / "a.pdf", PAGES)), 2)
    assert (made.page, [p.kind for p in made.problems]) == (1, ["no_headings"])
    assert made.text.split() == " ".join(" ".join(lines) for lines in PAGES).split()


def test_a_heading_that_is_not_found_begins_with_its_page_and_says_so(tmp_path: Path) -> None:
    """It is part of a longer line there, or a picture."""
    document = read(write(tmp_path / "a.pdf", [["one"], ["two about Restore", "three"]], [("Restore", 1, 0)], "T"))
    assert [tuple(p) for p in document.parts] == [
        (0, "T", "one", 1, True),
        (1, "Restore", "two about Restore\nthree", 2, False),
    ]


def test_headings_may_be_broken_spaced_and_in_capitals() -> None:
    parts = cut("T", ["x\n2.1  BACKUPS OF\n  ALL files \ny"], [(1, "Backups of all files", 0)])
    assert [(p.title, p.text, p.certain) for p in parts] == [("T", "x", True), ("Backups of all files", "y", True)]


def test_the_same_heading_twice_on_a_page_is_found_twice() -> None:
    parts = cut("T", ["Notes\n1\nNotes\n2"], [(1, "Notes", 0), (1, "Notes", 0)])
    assert [p.text for p in parts] == ["", "1", "2"]


@pytest.mark.parametrize(
    "entries",
    [[(1, "b", 1), (1, "a", 0)], [(1, "x", None)], [(1, "", 0), (2, "x", 1), (1, "(", 1)], [(1, "a", 0), (1, "x", 0)]],
)
def test_whatever_the_outline_says_each_word_is_kept_once_and_in_order(
    entries: list[tuple[int, str, int | None]],
) -> None:
    parts = cut("T", ["a\n1\n2", "b\n3", ""], entries)
    kept = "\n".join(f"{p.title}\n{p.text}" if p.certain and p.level else p.text for p in parts)
    assert kept.split() == ["a", "1", "2", "b", "3"]
    assert all(p.page is not None and 1 <= p.page <= 3 for p in parts)


def encrypted(path: Path, user: str) -> Path:
    writer = PdfWriter(clone_from=PdfReader(write(path, [["secret"]])))
    writer.encrypt(user_password=user, owner_password="owner", algorithm="AES-256")
    writer.write(path)
    return path


def test_an_encrypted_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="is encrypted; save it without a password"):
        read(encrypted(tmp_path / "a.pdf", "password"))


def test_a_file_that_only_forbids_changes_can_be_read(tmp_path: Path) -> None:
    assert read(encrypted(tmp_path / "a.pdf", "")).parts[0].text == "secret"


@pytest.mark.parametrize("data", [b"", b"secret", b"%PDF-1.7\nsecret"])
def test_a_damaged_file_says_so(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(data)
    with pytest.raises(DocumentError, match="can't be read as PDF") as raised:
        read(tmp_path / "a.pdf")
    assert "secret" not in str(raised.value)


def test_a_file_that_was_cut_off_is_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    data = write(tmp_path / "whole.pdf", PAGES, OUTLINE).read_bytes()
    for end in range(0, len(data), 150):
        (tmp_path / "a.pdf").write_bytes(data[:end])
        with contextlib.suppress(DocumentError):
            assert read(tmp_path / "a.pdf").parts
