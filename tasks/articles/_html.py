"""HTML and Word documents as Markdown: mammoth reads Word, lxml (through Beautiful Soup) HTML, markdownify writes it.

Headings inside lists, tables, quotations and links belong to those and begin no part. Scripts, styles and navigation
are left out, as are pictures' data; of a page with a `main` element, that is all that is read.
"""

import io
import re
import warnings
from pathlib import Path

import mammoth  # type: ignore[import-untyped]
from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import MarkdownConverter

from tasks.articles.parts import Document, DocumentError, Part, one_line, trimmed

_NO_TEXT = "script, style, template, noscript, nav, head, a.headerlink"  # the last: "¶" beside each heading
_NOT_BEGUN_IN = frozenset(
    {"li", "dd", "dt", "td", "th", "blockquote", "pre", "figure", "summary", "a", "b", "strong", "em", "i"}
)
_HEADING = re.compile("\0([1-6])([^\0]*)\0")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n){2,}")
# A table of contents repeats the headings. The title is the document's, above all headings.
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1.document-title:fresh",
        "p[style-name='TOC Heading'] => !",
        *(f"p[style-name='toc {level}'] => !" for level in range(1, 10)),
    ]
)


class _Writer(MarkdownConverter):
    """Markdown with a mark for each heading that begins a part: NUL, level, title, NUL."""

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802 - markdownify's name
        if parent_tags & _NOT_BEGUN_IN:
            return f"\n\n{text.strip()}\n\n" if "_inline" not in parent_tags else f" {text.strip()} "
        for br in el.find_all("br"):
            br.replace_with(" ")
        return f"\n\n\0{min(max(n, 1), 6)}{one_line(el.get_text())}\0\n\n"


def read_html(path: Path) -> Document:
    """Read an HTML file, in UTF-8 or in the encoding that it declares.

    Raises:
        DocumentError: Its bytes are not text of that encoding, or its elements lie too deep in each other.
        OSError: It can't be opened.
    """
    return parse(_decoded(path.read_bytes()), path.stem)


def read_docx(path: Path) -> Document:
    """Read a Word document (.docx).

    Raises:
        DocumentError: It is damaged, encrypted, or something else.
        OSError: It can't be opened.
    """
    data = path.read_bytes()
    no_source = mammoth.images.img_element(lambda _: {"src": ""})
    try:
        html = mammoth.convert_to_html(io.BytesIO(data), style_map=_STYLES, convert_image=no_source).value
    except Exception as error:  # whatever a damaged file makes of the parser
        hint = "it is damaged, encrypted or an older format; open it in Word and save it as .docx"
        raise DocumentError(f"can't be read as Word document ({type(error).__name__}): {hint}") from None
    return parse(html, path.stem)


def parse(html: str, name: str) -> Document:
    """Cut an HTML text at its headings. `name` is the title of a document that has none.

    Raises:
        DocumentError: Its elements lie too deep in each other.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # XHTML is HTML too, and a single line no file name
        soup = BeautifulSoup(html.replace("\0", ""), "lxml")
    titled = soup.select_one("h1.document-title") or soup.select_one("head > title")
    title = one_line(titled.get_text()) if titled else ""
    for gone in [*soup.select(_NO_TEXT), *soup.select("h1.document-title")[:1]]:
        gone.decompose()
    for image in soup.select("img[src^='data:']"):
        del image["src"]
    writer = _Writer(heading_style="atx", bullets="-", escape_asterisks=False, escape_underscores=False, sup_symbol="^")
    try:
        text = writer.convert_soup(soup.select_one("main, [role=main]") or soup)
    except RecursionError:
        raise DocumentError("has elements too deep in each other; export it with simpler markup") from None
    before, *rest = _HEADING.split(text)
    cuts = [("0", title or name, before), *zip(rest[::3], rest[1::3], rest[2::3], strict=True)]
    return Document(
        title or name, [Part(int(level), t, trimmed(_BLANK_LINES.sub("\n\n", below))) for level, t, below in cuts]
    )


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        declared = EncodingDetector.find_declared_encoding(data, is_html=True)
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            declared = "utf-16"
        if declared is None:
            raise DocumentError(
                f"is not UTF-8 (byte {error.start:,}) and declares no charset; save it as UTF-8"
            ) from None
    try:
        return data.decode(declared)
    except (LookupError, UnicodeDecodeError):
        raise DocumentError(f"is not text of its declared charset {declared[:40]!r}; save it as UTF-8") from None
