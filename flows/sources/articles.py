"""`leadline articles`: split a knowledge base into articles, and list those that need editing."""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet
import typer
from rich.console import Console
from rich.progress import track

from flows.console import print_lines, table
from flows.options import one_of, optional
from tasks.articles import documents
from tasks.articles.parts import DocumentError
from tasks.articles.problems import KINDS, check
from tasks.articles.split import Article, articles
from tasks.core.errors import DataError, LeadlineError, UsageError

SHOWN = 50  # articles to list; the file has all of them
_SCHEMA = pa.schema(
    [
        ("article_id", pa.string()),
        ("doc_id", pa.string()),
        ("doc_title", pa.string()),
        ("title", pa.string()),
        ("headings", pa.list_(pa.string())),
        ("page", pa.int32()),
        ("text", pa.string()),
        ("words", pa.int64()),
        ("problems", pa.list_(pa.struct([("kind", pa.string()), ("reason", pa.string())]))),
    ]
)


def _save(found: Sequence[Article], output_format: str, target: Path) -> None:
    """Write all articles atomically."""
    beside = target.with_name(f"{target.name}.part")
    rows = [asdict(a) for a in found]
    try:
        if output_format == "parquet":
            pyarrow.parquet.write_table(pa.Table.from_pylist(rows, _SCHEMA), beside)
        else:
            with beside.open("w", encoding="utf-8") as out:
                out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        beside.replace(target)
    except OSError as error:
        raise LeadlineError(f"{target}: can't be written ({error.strerror}). Choose another place.") from error


def _show(
    found: Sequence[Article], failed: Sequence[tuple[str, str]], n_documents: int, others: int, target: Path
) -> None:
    console = Console(soft_wrap=False)
    if failed:
        console.print(table("Documents that could not be read", ("document", "reason"), failed))
    faulty = [a for a in found if a.problems]
    if faulty:
        rows = [
            (a.article_id, a.title or "(empty)", _place(a), "\n".join(f"{p.kind}: {p.reason}" for p in a.problems))
            for a in faulty[:SHOWN]
        ]
        shown = table("To fix", ("article", "title", "document", "reasons"), rows)
        shown.columns[0].no_wrap = True
        console.print(shown)
        if len(faulty) > SHOWN:
            print_lines(f"… and {len(faulty) - SHOWN:,} more: see `problems` in {target}\n")
    lengths = [a.words for a in found]
    counts = {
        "documents": n_documents,
        "documents that could not be read": len(failed),
        "files of other kinds": others,
        "articles": len(found),
        "articles to fix": len(faulty),
        "words": sum(lengths),
        "words of an article, median": round(statistics.median(lengths)) if lengths else 0,
    }
    kinds = Counter(p.kind for a in found for p in a.problems)
    counts |= {f"{kind}: {KINDS[kind]}": kinds[kind] for kind in KINDS if kinds[kind]}
    numbers = table("Articles", ("", "number"), [(name, f"{n:,}") for name, n in counts.items()], numbers={"number"})
    numbers.show_header = False
    console.print(numbers)
    if found:
        print_lines(f"articles  {target}")


def _place(a: Article) -> str:
    return f"{a.doc_id}, page {a.page}" if a.page else a.doc_id


def command(
    paths: Annotated[list[Path], typer.Argument(help="Folders and files: Markdown, HTML, DOCX, PDF.", metavar="PATH")],
    base: Annotated[
        Path | None,
        optional("Ids come from paths below it; by default the folder common to all.", "--base", metavar="DIR"),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=6, help="Deepest headings that begin an article.")] = 2,
    min_words: Annotated[int, typer.Option("--min-words", min=0, help="Fewer are too short.")] = 30,
    max_words: Annotated[int, typer.Option("--max-words", min=1, help="More are too long.")] = 800,
    form: Annotated[str, one_of("jsonl", "parquet")] = "jsonl",
    output: Annotated[
        Path | None, optional("The file to write; `articles.jsonl` by default.", "--output", "-o")
    ] = None,
) -> None:
    """Split a knowledge base into self-contained articles, and list those that are not.

    Example: leadline articles handbook/ -o articles.jsonl
    """
    if min_words > max_words:
        raise UsageError(f"--min-words {min_words} is above --max-words {max_words}. Give a smaller one.")
    places, others = documents.find(paths, base)
    target = output or Path(f"articles.{form}")
    if target.resolve() in {place.path.resolve() for place in places}:
        raise UsageError(f"--output {target} is one of the documents. Give another file.")
    found: list[Article] = []
    failed: list[tuple[str, str]] = []
    watched = Console(stderr=True)
    for place in track(places, "documents", console=watched, transient=True, disable=not sys.stderr.isatty()):
        try:
            found += articles(place.doc_id, documents.read(place.path), depth)
        except DocumentError as error:
            failed.append((place.doc_id, str(error)))
    found = check(found, min_words, max_words)
    if found:
        _save(found, form, target)
    _show(found, failed, len(places), others, target)
    if failed:
        written = f"{target} has the articles of the others" if found else f"{target} was not written"
        raise DataError(
            f"{len(failed):,} of {len(places):,} documents could not be read; {written}. Fix the listed ones, or leave"
            " them out."
        )
