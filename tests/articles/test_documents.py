"""Which files are documents, what they are called, and what can't be read."""

import os
from pathlib import Path

import pytest

from tasks.articles.documents import find, read
from tasks.articles.parts import DocumentError
from tasks.core.errors import SourceError, UsageError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    root = tmp_path / "kb"
    for name in ["b.MD", "a.html", "sub/c.pdf", "sub/deep/d.docx", "sub/e.markdown", "f.htm"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    for name in ["logo.png", "sub/notes.txt", ".git/x.md", ".hidden.md", "sub/~$d.docx"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    return root


def names(paths: list[Path], base: Path | None = None) -> list[str]:
    return [place.doc_id for place in find(paths, base)[0]]


def test_a_folder_gives_its_documents_by_path_and_counts_other_files(base: Path) -> None:
    places, others = find([base], None)
    assert [p.doc_id for p in places] == ["a.html", "b.MD", "f.htm", "sub/c.pdf", "sub/deep/d.docx", "sub/e.markdown"]
    assert [p.path for p in places] == [base / p.doc_id for p in places]
    assert others == 2  # logo.png, notes.txt


def test_ids_are_paths_below_the_common_folder_or_below_the_base(base: Path) -> None:
    assert names([base / "sub" / "c.pdf"]) == ["c.pdf"]
    assert names([base / "sub" / "c.pdf"], base) == ["sub/c.pdf"]
    assert names([base / "sub" / "c.pdf", base / "a.html"]) == ["a.html", "sub/c.pdf"]
    assert names([base / "sub", base / "sub" / "deep"], base.parent) == [
        "kb/sub/c.pdf",
        "kb/sub/deep/d.docx",
        "kb/sub/e.markdown",
    ]


def test_a_path_may_be_relative(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base / "sub")
    assert names([Path("../sub/deep"), Path("c.pdf")], Path("..")) == ["sub/c.pdf", "sub/deep/d.docx"]


def test_links_to_folders_are_not_followed(base: Path) -> None:
    (base / "sub" / "loop").symlink_to(base)
    assert len(names([base])) == 6


@pytest.mark.parametrize(
    ("paths", "below", "message"),
    [
        (["nowhere"], None, "nowhere does not exist"),
        (["logo.png"], None, "logo.png: no reader for files of this kind. Known ones: .md, "),
        (["a.html"], "sub", "is not below --base"),
        ([".git"], "", ""),
        (["empty"], None, "empty: no documents there"),
    ],
)
def test_mistakes(base: Path, paths: list[str], below: str | None, message: str) -> None:
    (base / "empty").mkdir()
    given = [base / p for p in paths]
    if not message:  # a hidden folder that is asked for by name is read
        assert names(given, base) == [".git/x.md"]
        return
    with pytest.raises(UsageError) as raised:
        find(given, base / below if below else None)
    assert message in str(raised.value)


def test_a_name_that_is_no_text_can_be_written_as_json(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"gr\xfcn.md")).write_text("text")
    assert names([tmp_path]) == ["gr\ufffdn.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_stops(base: Path) -> None:
    (base / "sub").chmod(0)
    try:
        with pytest.raises(SourceError, match="Permission denied"):
            find([base], None)
    finally:
        (base / "sub").chmod(0o755)


def test_a_file_that_is_gone_is_a_failed_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="can't be opened"):
        read(tmp_path / "gone.md")


@pytest.mark.parametrize(("name", "text"), [("a.md", " \n"), ("a.md", "# Only a heading"), ("a.html", "<p></p>")])
def test_a_document_without_text_is_a_failed_one(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DocumentError, match="holds no text"):
        read(tmp_path / name)
