"""`leadline articles` as a user runs it: the file, the printed tables, exit codes, and the bar."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docx
import pyarrow.parquet as pq
import pytest
from kit.root import ROOT
from reportlab.pdfgen.canvas import Canvas

GOOD = "Backups are kept for thirty days in the region of their owner, " * 4  # 48 words


def leadline(*args: object, env: Mapping[str, str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "flows", "articles", *map(str, args)]
    path = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env={**env, "PYTHONPATH": path}, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """One document of each kind; of the seven articles, those titled Restore and Hours have problems."""
    root = tmp_path / "kb"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text(f"# Backups\n{GOOD} a\n\n## Restore\nIt is done by hand, see above. ☃\n")
    (root / "b.html").write_text(f"<title>Site</title><p>{GOOD} b<h1>Hours [bold]</h1><p>Nine to five.")
    word = docx.Document()
    word.add_heading("Contract", 1)
    word.add_paragraph(f"{GOOD} c")
    word.save(str(root / "sub" / "c.docx"))
    canvas = Canvas(str(root / "sub" / "d.pdf"))
    for i, name in enumerate(["Prices", "Taxes"]):
        canvas.bookmarkPage(name)
        canvas.addOutlineEntry(name, name)
        for j, line in enumerate([name, *(GOOD[k : k + 60] for k in range(0, len(GOOD), 60)), f"d{i}"]):
            canvas.drawString(72, 760 - 20 * j, line)
        canvas.showPage()
    canvas.save()
    (root / "logo.png").write_bytes(b"")
    return root


def test_a_base_becomes_a_file_and_two_tables(base: Path, no_server: dict[str, str]) -> None:
    done = leadline("kb", env=no_server, cwd=base.parent)
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(base.parent / "articles.jsonl")
    assert [(r["doc_id"], r["title"], r["headings"], r["page"]) for r in found] == [
        ("a.md", "Backups", ["Backups"], None),
        ("a.md", "Restore", ["Backups", "Restore"], None),
        ("b.html", "Site", [], None),
        ("b.html", "Hours [bold]", ["Hours [bold]"], None),
        ("sub/c.docx", "Contract", ["Contract"], None),
        ("sub/d.pdf", "Prices", ["Prices"], 1),
        ("sub/d.pdf", "Taxes", ["Taxes"], 2),
    ]
    assert list(found[0]) == [
        "article_id", "doc_id", "doc_title", "title", "headings", "page", "text", "words", "problems",
    ]  # fmt: skip
    assert found[1]["text"] == "It is done by hand, see above. ☃"
    assert [[p["kind"] for p in r["problems"]] for r in found] == [
        [], ["too_short", "leans_on_others", "dangling_start"], [], ["too_short"], [], [], [],
    ]  # fmt: skip
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for reported in (
        "documents 4",
        "files of other kinds 1",
        "articles 7",
        "articles to fix 2",
        "articles articles.jsonl",
    ):
        assert reported in lines
    assert any(line.startswith("too_short: ") and line.endswith(" 2") for line in lines)
    assert any(
        line.startswith(f"{found[1]['article_id']} Restore a.md too_short: 7 words, fewer than 30") for line in lines
    )
    assert any("Hours [bold]" in line for line in lines)  # a title is no markup of the terminal
    assert found[0]["article_id"] not in done.stdout


def test_parquet_has_the_same_rows(base: Path, no_server: dict[str, str]) -> None:
    for form in ("jsonl", "parquet"):
        done = leadline(base, "--format", form, "--output", base.parent / f"out.{form}", env=no_server, cwd=base.parent)
        assert done.returncode == 0
    assert pq.read_table(base.parent / "out.parquet").to_pylist() == rows(base.parent / "out.jsonl")
    assert sorted(p.name for p in base.parent.iterdir()) == ["kb", "out.jsonl", "out.parquet"]


def test_options_reach_the_articles(base: Path, no_server: dict[str, str]) -> None:
    options = ("--depth", 1, "--min-words", 3, "--max-words", 40, "--base", base.parent, "-o", "out.jsonl")
    done = leadline(base / "a.md", base / "b.html", *options, env=no_server, cwd=base.parent)
    assert done.returncode == 0
    found = rows(base.parent / "out.jsonl")
    assert [(r["doc_id"], r["title"]) for r in found] == [
        ("kb/a.md", "Backups"),
        ("kb/b.html", "Site"),
        ("kb/b.html", "Hours [bold]"),
    ]
    assert [[p["kind"] for p in r["problems"]] for r in found] == [["too_long", "leans_on_others"], ["too_long"], []]


def test_documents_that_cannot_be_read_are_listed_and_the_others_written(base: Path, no_server: dict[str, str]) -> None:
    (base / "bad.md").write_bytes(b"secret gr\xfcn")
    (base / "sub" / "bad.pdf").write_bytes(b"secret")
    done = leadline("kb", env=no_server, cwd=base.parent)
    assert done.returncode == 3
    assert "2 of 6 documents could not be read; articles.jsonl has the articles of the others." in done.stderr
    assert "bad.md " in done.stdout
    assert "is not UTF-8 (byte 9)" in done.stdout
    assert "sub/bad.pdf " in done.stdout
    assert "secret" not in done.stdout + done.stderr
    assert len(rows(base.parent / "articles.jsonl")) == 7


def test_where_nothing_can_be_read_the_file_of_before_stays(tmp_path: Path, no_server: dict[str, str]) -> None:
    (tmp_path / "a.md").write_bytes(b"\xff")
    (tmp_path / "articles.jsonl").write_text("before")
    done = leadline("a.md", env=no_server, cwd=tmp_path)
    assert (done.returncode, "articles.jsonl was not written" in done.stderr) == (3, True)
    assert (tmp_path / "articles.jsonl").read_text() == "before"


def test_a_long_list_is_cut_off_and_says_where_the_rest_is(tmp_path: Path, no_server: dict[str, str]) -> None:
    text = "\n\n".join(f"# Title {i}\nshort {i}" for i in range(53))
    (tmp_path / "a.md").write_text(text)
    done = leadline("a.md", env=no_server, cwd=tmp_path)
    assert "… and 3 more: see `problems` in articles.jsonl" in done.stdout
    assert ("Title 49 " in done.stdout, "Title 50 " in done.stdout) == (True, False)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["kb/empty"], "no documents there"),
        (["kb/oot"], "does not exist"),
        (["kb", "--format", "parkett"], "--format parkett: no such format. Did you mean 'parquet'."),
        (["kb", "--min-words", "9", "--max-words", "8"], "--min-words 9 is above --max-words 8"),
        (["kb", "--depth", "7"], "'--depth'"),
        (["kb", "-o", "kb/a.md"], "is one of the documents"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage(base: Path, no_server: dict[str, str], options: list[str], reported: str) -> None:
    (base / "empty").mkdir()
    before = (base / "a.md").read_text()
    done = leadline(*options, env=no_server, cwd=base.parent)
    assert (done.returncode, reported in done.stderr) == (2, True)
    assert (base / "a.md").read_text() == before
    assert not (base.parent / "articles.jsonl").exists()


def test_a_place_that_cannot_be_written(base: Path, no_server: dict[str, str]) -> None:
    done = leadline("kb", "-o", "nowhere/out.jsonl", env=no_server, cwd=base.parent)
    assert done.returncode == 1
    assert "nowhere/out.jsonl: can't be written (No such file or directory)" in done.stderr


def test_a_terminal_gets_a_bar(base: Path, no_server: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flows", "articles", str(base), "-o", str(base.parent / "out.jsonl")]
    root = ROOT
    env = {**no_server, "TERM": "xterm"}
    done = subprocess.run(command, cwd=root, env=env, stdout=subprocess.PIPE, stderr=theirs, timeout=120, check=False)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert "documents" in shown
    assert "100%" in shown
