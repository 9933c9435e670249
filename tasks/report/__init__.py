"""The static report: a page per night, a page per trace, a list of nights. It opens from disk, without a server.

A night is built beside its place and moved there whole. Texts of traces get into the pages and nowhere else; numbers
are shown as the tables hold them: nothing is judged or averaged here.
"""

import json
from datetime import date
from pathlib import Path
from typing import Any

from tasks.report import night as nights
from tasks.report.files import replacing, write
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
    write(out / "style.css", style())
    with replacing(place) as fresh:
        _trace_pages(reader, fresh / "traces", known, night, listing)
        page = nights.gather(reader, known, night, listing)
        paged = {r["trace_id"] for r in listing}
        write(fresh / "index.html", render("night", recipe=known, night=night, listing=listing, paged=paged, **page))
        write(fresh / SUMMARY, json.dumps(nights.summary(known, night, page), ensure_ascii=False))
    write(out / "index.html", render("index", nights=_summaries(out)))
    return place / "index.html"


def _trace_pages(reader: Reader, folder: Path, recipe: Row, night: date, listing: list[dict[str, Any]]) -> None:
    ids = [r["trace_id"] for r in listing]
    beside = dict(zip(ids, zip([None, *ids[:-1]], [*ids[1:], None], strict=True), strict=True)) if ids else {}
    thresholds = nights.triad_thresholds(recipe)
    for view in load(reader, recipe, night, ids):
        before, after = (i and slug(i) for i in beside[view.row["trace_id"]])
        html = render(
            "trace", recipe=recipe, night=night, trace=view, thresholds=thresholds, before=before, after=after
        )
        write(folder / f"{view.slug}.html", html)


def _summaries(out: Path) -> list[dict[str, Any]]:
    """What the nights that stand in `out` say of themselves, the latest first."""
    files = sorted(out.glob(f"[0-9]*/{SUMMARY}"), reverse=True)
    return [json.loads(f.read_text(encoding="utf-8")) for f in files]
