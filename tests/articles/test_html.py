"""HTML pages and Word documents become parts with readable Markdown below each heading."""

import re
from pathlib import Path

import docx
import pytest
from docx.document import Document as Word
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tasks.articles._html import parse, read_docx, read_html
from tasks.articles.parts import DocumentError
from tasks.articles.split import articles

PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html><head><title>Harbor  docs</title><style>p {}</style></head>
<body><nav>Menu</nav><script>track()</script>
<p>Before.</p>
<div><section><h1>Back<em>ups</em><a class="headerlink" href="#b">¶</a></h1>
<p>Kept for <b>thirty</b> days, 10<sup>3</sup> of them; see <a href="r.html">Restore</a>.<!-- no text -->
<ul><li>one<li>two<ul><li>deep</ul></ul>
<table><tr><th>size<th>days<tr><td>small<td>30</table></section></div>
<h3>Code<br>here</h3><pre>x = 1
  y = 2</pre><img src="data:image/png;base64,AAAA" alt="a chart">
</body></html>"""


def cuts(html: str) -> list[tuple[int, str, str]]:
    return [(p.level, p.title, p.text) for p in parse(html, "name").parts]


def test_a_page_is_cut_at_its_headings_wherever_they_lie() -> None:
    assert cuts(PAGE) == [
        (0, "Harbor docs", "Before."),
        (
            1,
            "Backups",
            "Kept for **thirty** days, 10^3^ of them; see [Restore](r.html).\n\n- one\n- two\n  - deep\n\n"
            "| size | days |\n| --- | --- |\n| small | 30 |",
        ),
        (3, "Code here", "```\nx = 1\n  y = 2\n```\n\n![a chart]()"),
    ]


def test_headings_in_lists_tables_quotations_and_links_begin_no_part() -> None:
    html = "<h1>One</h1><ul><li><h2>a</h2></ul><table><tr><td><h2>b</h2></table><blockquote><h2>c</h2></blockquote><a href=x><h2>d</h2></a>"
    (before, one) = cuts(html)
    assert (before[2], one[1]) == ("", "One")
    assert [word for word in "abcd" if word not in one[2]] == []


def test_of_a_page_with_a_main_element_that_is_read() -> None:
    html = "<header>Site</header><main><h1>One</h1>text</main><footer>Imprint</footer>"
    assert cuts(html) == [(0, "name", ""), (1, "One", "text")]
    assert cuts(html.replace("<main>", "<div role=main>").replace("</main>", "</div>"))[1] == (1, "One", "text")


def test_marks_of_markdown_in_the_text_make_no_headings_and_no_backslashes() -> None:
    assert cuts("<p># not_a *heading*</p><p>- - -</p>") == [(0, "name", "# not_a *heading*\n\n- - -")]


def test_a_page_without_a_title_has_the_file_s_name(tmp_path: Path) -> None:
    (tmp_path / "restore.html").write_text("<p>text")
    assert read_html(tmp_path / "restore.html").title == "restore"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<p>grün".encode(), "grün"),
        ("\ufeff<p>grün".encode(), "grün"),
        ('<meta charset="iso-8859-1"><p>grün'.encode("latin-1"), "grün"),
        ('<?xml version="1.0" encoding="iso-8859-1"?><html><p>grün'.encode("latin-1"), "grün"),
        ("<p>grün".encode("utf-16"), "grün"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.html").write_bytes(data)
    assert read_html(tmp_path / "a.html").parts[0].text == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<p>secret gr\xfcn", "byte 12"),
        (b'<meta charset="no-such"><p>secret gr\xfcn', "'no-such'"),
        (b'<meta charset="shift_jis"><p>secret \xfc\xfc', "'shift_jis'"),
        (b"<div>" * 5000 + b"secret", "too deep"),
    ],
)
def test_pages_that_cannot_be_read_say_why(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.html").write_bytes(data)
    with pytest.raises(DocumentError, match=message) as raised:
        read_html(tmp_path / "a.html")
    assert "secret" not in str(raised.value)


@given(
    st.lists(
        st.sampled_from(
            ["p", "h1", "h2", "h3", "li", "td", "div", "b", "pre", "blockquote", "dd", "span", "/div", "/p", "/h1"]
        ),
        max_size=30,
    )
)
def test_no_word_of_a_soup_of_tags_is_lost(tags: list[str]) -> None:
    """Tags that are never closed, closed too often, or in the wrong place."""
    html = "".join(f"<{tag}> w{i} " for i, tag in enumerate(tags))
    made = articles("a.html", parse(html, "name"), 2)
    kept = {word for a in made for text in (*a.headings, a.text) for word in re.findall(r"w\d+", text)}
    assert kept == {f"w{i}" for i in range(len(tags))}


@pytest.fixture
def word() -> Word:
    made = docx.Document()
    made.add_heading("Handbook", 0)  # the style "Title"
    made.add_paragraph("Before.")
    made.add_heading("Backups", 1)
    made.add_paragraph("Kept for ").add_run("thirty").bold = True
    made.add_paragraph("one", style="List Bullet")
    made.add_paragraph("two", style="List Bullet")
    table = made.add_table(2, 2)
    for cell, text in zip((c for row in table.rows for c in row.cells), ["size", "days", "small", "30"], strict=True):
        cell.text = text
    made.add_heading("By region", 2)
    made.add_paragraph("Longer in the EU.")
    return made


def test_a_word_document_is_cut_at_its_heading_styles(tmp_path: Path, word: Word) -> None:
    word.save(str(tmp_path / "a.docx"))
    document = read_docx(tmp_path / "a.docx")
    assert document.title == "Handbook"
    assert [(p.level, p.title) for p in document.parts] == [(0, "Handbook"), (1, "Backups"), (2, "By region")]
    before, backups, region = (p.text for p in document.parts)
    assert (before, region) == ("Before.", "Longer in the EU.")
    assert backups.startswith("Kept for **thirty**\n\n- one\n- two\n\n|")
    assert backups.endswith("| size | days |\n| small | 30 |")


def test_pictures_of_a_word_document_leave_no_data(tmp_path: Path, word: Word) -> None:
    Image.new("RGB", (40, 40), "red").save(tmp_path / "red.png")
    word.add_picture(str(tmp_path / "red.png"))
    word.save(str(tmp_path / "a.docx"))
    assert read_docx(tmp_path / "a.docx").parts[-1].text == "Longer in the EU.\n\n![]()"


def test_a_table_of_contents_is_no_text(tmp_path: Path, word: Word) -> None:
    style = word.styles.add_style("toc 1", 1)
    word.paragraphs[1].insert_paragraph_before("Backups ..... 3", style=style)
    word.save(str(tmp_path / "a.docx"))
    assert read_docx(tmp_path / "a.docx").parts[0].text == "Before."


@pytest.mark.parametrize("data", [b"", b"secret", b"PK\x03\x04secret", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1secret"])
def test_something_else_is_no_word_document(tmp_path: Path, data: bytes) -> None:
    """The last one is how an encrypted document and one of Word 2003 begin."""
    (tmp_path / "a.docx").write_bytes(data)
    with pytest.raises(DocumentError, match="damaged, encrypted or an older format") as raised:
        read_docx(tmp_path / "a.docx")
    assert "secret" not in str(raised.value)
