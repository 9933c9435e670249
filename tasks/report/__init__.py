"""The static report: a page per night, a page per trace, a list of nights. It opens from disk, without a server.

A night is built beside its place and moved there whole. Texts of traces get into the pages and nowhere else; numbers
are shown as the tables hold them: nothing is judged or averaged here.
"""

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from tasks.core.errors import LeadlineError
from tasks.report import night as nights
from tasks.report.pages import render, style
from tasks.report.reader import Reader, select
from tasks.report.text import slug
from tasks.report.traces import load
from tasks.report.views import Row

__all__ = ["Reader", "build"]

SUMMARY = "night.json"


def build(reader: Reader, out: Path, night: date, recipe: str, max_trace_pages: int) -> Path:
    """Write the pages of one night, and refresh the list of nights.

    Args:
        reader: Whoever holds the tables.
        out: The site's directory; made if it is not there.
        recipe: The recipe whose results are shown.
        max_trace_pages: Traces that get a page of their own, those most worth a look first.

    Returns:
        The night's page, `out/<night>/index.html`.

    Raises:
        LeadlineError: The recipe is unknown, or the site can't be written.
    """
    known = nights.recipe_row(reader, recipe)
    listing = select(reader, "listing", recipe=recipe, night=night, limit=max_trace_pages)
    listing.sort(key=lambda r: (r["app"], r["generator"], r["turn"]))
    place = out / night.isoformat()
    try:
        out.mkdir(parents=True, exist_ok=True)
        _write(out / "style.css", style())
        with _replacing(place) as fresh:
            _trace_pages(reader, fresh / "traces", known, night, listing)
            page = nights.gather(reader, known, night, listing)
            paged = {r["trace_id"] for r in listing}
            html = render("night", recipe=known, night=night, listing=listing, paged=paged, **page)
            (fresh / "index.html").write_text(html, encoding="utf-8", newline="")
            facts = json.dumps(nights.summary(known, night, page), ensure_ascii=False)
            (fresh / SUMMARY).write_text(facts, encoding="utf-8")
        _write(out / "index.html", render("index", nights=_summaries(out)))
    except OSError as error:
        raise LeadlineError(
            f"{error.filename or out}: the report can't be written ({error.strerror}). Free space or grant access, "
            "then publish again; what was published before still stands."
        ) from error
    return place / "index.html"


def _trace_pages(reader: Reader, folder: Path, recipe: Row, night: date, listing: list[dict[str, Any]]) -> None:
    folder.mkdir()
    ids = [r["trace_id"] for r in listing]
    beside = dict(zip(ids, zip([None, *ids[:-1]], [*ids[1:], None], strict=True), strict=True)) if ids else {}
    thresholds = nights.triad_thresholds(recipe)
    for view in load(reader, recipe, night, ids):
        before, after = (i and slug(i) for i in beside[view.row["trace_id"]])
        html = render(
            "trace", recipe=recipe, night=night, trace=view, thresholds=thresholds, before=before, after=after
        )
        (folder / f"{view.slug}.html").write_text(html, encoding="utf-8", newline="")


def _summaries(out: Path) -> list[dict[str, Any]]:
    """What the nights that stand in `out` say of themselves, the latest first."""
    files = sorted(out.glob(f"[0-9]*/{SUMMARY}"), reverse=True)
    return [json.loads(f.read_text(encoding="utf-8")) for f in files]


@contextmanager
def _replacing(place: Path) -> Iterator[Path]:
    """A new directory that takes the place of `place` when the block ends well, and is gone when it does not."""
    for leftover in sorted(place.parent.glob(f".{place.name}.*")):  # of a run that was killed
        if leftover.suffix == ".old" and not place.exists():
            leftover.rename(place)
        else:
            shutil.rmtree(leftover)
    token = secrets.token_hex(4)
    fresh, old = (place.with_name(f".{place.name}.{token}.{kind}") for kind in ("new", "old"))
    fresh.mkdir()
    try:
        yield fresh
        if place.exists():
            place.rename(old)
        try:
            fresh.rename(place)
        except OSError:
            if old.exists():
                old.rename(place)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    """Write a file so that it is seen whole or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
