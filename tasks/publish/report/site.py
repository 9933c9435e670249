"""The static report: a page per night, a page per trace, and a list of nights. It opens from disk, without a server.

A night is built in a temporary directory, then moved to its place. Texts of traces are written only to pages. Numbers
come straight from the tables; nothing is judged or averaged here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tasks.core.config import Alerts
from tasks.core.paths import refused_command
from tasks.publish.report import index
from tasks.publish.report.explorer import CHARACTERS, write_explorer
from tasks.publish.report.files import replacing, write
from tasks.publish.report.night import gather as nights
from tasks.publish.report.night import waterfall
from tasks.publish.report.night.gather import refused
from tasks.publish.report.night.opening import opening
from tasks.publish.report.night.trust import Trust, trust
from tasks.publish.report.pages import render, style
from tasks.publish.report.reader import Reader, select
from tasks.publish.report.text import slug
from tasks.publish.report.traces import load
from tasks.publish.report.views import Row

__all__ = ["Reader", "build", "refused"]


@dataclass(frozen=True, slots=True)
class _Site:
    """The pages of one recipe of a night.

    Attributes:
        name: Name of the recipe, unique within the night.
        folder: Folder below the night's directory: `""`, or a name and a slash.
        traces: Traces that the explorer lists, worst first.
        listing: Traces that have a page, by app and generator.
        trust: Trust in the judge, by app.
        refused: The command that lists the night's refused rows.
    """

    recipe: Row
    name: str
    folder: str
    traces: list[dict[str, Any]]
    listing: list[dict[str, Any]]
    trust: Mapping[str, Trust]
    refused: str

    @property
    def paged(self) -> frozenset[str]:
        """Ids of traces that have a page."""
        return frozenset(r["trace_id"] for r in self.listing)

    @property
    def back(self) -> str:
        """Relative path from the recipe's night page to the night's directory."""
        return "../" if self.folder else ""


def build(
    reader: Reader,
    out: Path,
    night: date,
    recipe: str,
    max_trace_pages: int,
    others: Mapping[str, str] | None = None,
    left_out: Mapping[str, Sequence[Row]] | None = None,
    watch: Alerts | None = None,
    option: str = "",
    max_explorer_traces: int = 100_000,
) -> Path:
    """Write the pages of one night, and refresh the list of nights.

    Args:
        reader: Reads the tables.
        out: The site's directory, created if it is missing.
        recipe: Hash of the recipe to show.
        others: Hashes of the night's other recipes by name. Their pages are written to subdirectories.
        max_trace_pages: Largest number of trace pages; the worst traces get one.
        left_out: The result of `refused`, if already known.
        watch: Settings of alerts; the defaults if None.
        option: The command line option that names the config, with a leading space; empty for the default config.
        max_explorer_traces: Largest number of traces in the explorer, worst first. Traces with a page are always in it.

    Returns:
        The night's page, `out/<night>/index.html`.

    Raises:
        LeadlineError: The recipe is unknown, or the site can't be written.
    """
    beside = (others or {}).items()
    most = max_trace_pages, max_explorer_traces
    sites = [_site(reader, night, r, most, name, option) for name, r in (("", recipe), *beside)]
    place = out / night.isoformat()
    left_out = refused(reader, night) if left_out is None else left_out
    known = index.summaries(out)
    write(out / "style.css", style())
    with replacing(place) as fresh:
        for site in sites:
            before = index.latest(known, site.recipe["recipe_name"], night)
            _write_site(reader, fresh / site.folder, night, site, sites, left_out, before, watch or Alerts())
    every = index.summaries(out)
    write(out / "index.html", render("index", nights=every, trends=index.trends(every)))
    return place / "index.html"


def _site(reader: Reader, night: date, recipe: str, most: tuple[int, int], name: str, option: str) -> _Site:
    known = nights.recipe_row(reader, recipe)
    limit, shown = max(most), CHARACTERS + 1
    traces = select(reader, "listing", recipe=recipe, night=night, limit=limit, characters=shown)
    paged = [r for r in traces if r["has_text"]][: most[0]]
    listing = sorted(paged, key=lambda r: (r["app"], r["generator"], r["turn"]))
    trusted = {row["app"]: trust(row, option) for row in select(reader, "trust", recipe=recipe, night=night)}
    command = refused_command(option, night, night)
    back = f"{slug(name)}/" if name else ""
    return _Site(known, name or known["recipe_name"], back, traces, listing, trusted, command)


def _write_site(
    reader: Reader,
    folder: Path,
    night: date,
    site: _Site,
    sites: Sequence[_Site],
    left_out: Mapping[str, Sequence[Row]],
    before: index.Night | None,
    watch: Alerts,
) -> None:
    _trace_pages(reader, folder / "traces", night, site, sites)
    page = {**nights.gather(reader, site.recipe, night, site.listing), **left_out}
    up, switch = f"../{site.back}", _switch(site, sites)
    summary = nights.summary(site.recipe, night, page)
    changed = index.changes(before, summary) if before else []
    summary["opening"] = opening(page, site.trust.values(), changed, watch, site.refused)
    html = render(
        "night",
        recipe=site.recipe,
        night=night,
        listing=site.listing,
        trust=site.trust.values(),
        opening=summary["opening"],
        paged=site.paged,
        explored=len(site.traces),
        up=up,
        switch=switch,
        **page,
    )
    write(folder / "index.html", html)
    write_explorer(
        folder,
        night,
        site.traces,
        site.listing,
        metric=page["metrics"][0],
        total=page["total"],
        method=page["method"],
        up=up,
        switch=_switch(site, sites, file="explorer.html"),
    )
    write(folder / index.SUMMARY, json.dumps(summary, ensure_ascii=False))


def _switch(
    site: _Site, sites: Sequence[_Site], trace_id: str | None = None, file: str = "index.html"
) -> list[tuple[str, str | None]]:
    """Links to the same page of the night's other recipes: (name, relative path). The path of this recipe is None.

    Args:
        file: The current page, unless it is a trace page.
        trace_id: The trace of the current page. Recipes without a page of this trace get a link to their night page.
    """
    back = site.back if trace_id is None else f"../{site.back}"
    found: list[tuple[str, str | None]] = []
    for other in sites:
        page = f"traces/{slug(trace_id)}.html" if trace_id is not None and trace_id in other.paged else file
        found.append((other.name, None if other is site else f"{back}{other.folder}{page}"))
    return found if len(sites) > 1 else []


def _trace_pages(reader: Reader, folder: Path, night: date, site: _Site, sites: Sequence[_Site]) -> None:
    recipe = site.recipe
    ids = [r["trace_id"] for r in site.listing]
    beside = {id_: (before, after) for before, id_, after in zip([None, *ids], ids, [*ids[1:], None], strict=False)}
    thresholds, stages = (nights.thresholds(recipe, check) for check in ("triad", "waterfall"))
    for view in load(reader, recipe, night, ids):
        before, after = (i and slug(i) for i in beside[view.row["trace_id"]])
        html = render(
            "trace",
            recipe=recipe,
            night=night,
            trace=view,
            method=nights.method_of(recipe),
            thresholds=thresholds,
            waterfall=waterfall.steps(view.row, stages),
            calibrated=waterfall.calibrated(stages),
            trust=site.trust.get(view.row["app"]),
            before=before,
            after=after,
            up=f"../../{site.back}",
            switch=_switch(site, sites, view.row["trace_id"]),
        )
        write(folder / f"{view.slug}.html", html)
