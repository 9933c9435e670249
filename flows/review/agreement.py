"""`leadline review agreement`: how much people have labeled, how far they agree, and what they disagree on."""

import json
import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.console import counted
from flows.options import App, Config, FromAll, Json, OneDay, To, days_or_all, optional
from tasks.core.config import load_nightly, recipes_of
from tasks.core.paths import CONFIG
from tasks.review.agreement import Found, reviewers_agreement
from tasks.review.export import Scope, scope_of
from tasks.stats.agreement import Interval
from tasks.store.warehouse import reading

MOST_SHOWN = 10  # open disputes


def run(
    config: Path, recipe: str | None, app: str | None, days: tuple[date | None, date | None], *, as_json: bool
) -> None:
    """Show it for every recipe of the config, or for the one that is named.

    Raises:
        UsageError: There is no such recipe, or no warehouse yet.
    """
    nightly = load_nightly(config)
    with reading(nightly.warehouse) as reader:
        if recipe:
            scopes = {recipe: scope_of(reader, recipe, app, *days)}
        else:  # one of them may have no scores yet
            names = [chosen.recipe.name for chosen in recipes_of(nightly, config)]
            scopes = {name: Scope(name, None, app, *days) for name in names}
        found = {word: reviewers_agreement(reader, scope) for word, scope in scopes.items()}
    for word, of in found.items():
        if as_json:
            sys.stdout.write(json.dumps({"recipe": word, **asdict(of)}, ensure_ascii=False) + "\n")
        else:
            _show(Console(), word, of)


def _show(console: Console, recipe: str, found: Found) -> None:
    def say(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True)

    say(f"[bold]Recipe {escape(recipe)}[/bold]")
    if not found.claims:
        say("No claim is labeled.\n")
        return
    by = ", ".join(f"{n:,} by {counted(k, 'reviewer')}" for k, n in found.by_reviewers.items())
    say(f"{counted(found.claims, 'claim')} labeled: {by}; {found.adjudicated:,} adjudicated.")
    say(f"Came out as: {', '.join(f'{name} {n:,}' for name, n in sorted(found.outcomes.items()))}.")
    say(f"Reviewers: {', '.join(f'{escape(name)} {n:,}' for name, n in found.reviewers.items())}.")
    if found.shared:
        say(f"\nOver the {counted(found.shared, 'claim')} that at least two labeled:")
        say(f"  same label          {_interval(found.share)}")
        say(f"  Krippendorff's α    {_interval(found.alpha)}")
        table = Table(box=box.SIMPLE, show_edge=False, header_style="bold")
        for column in ("reviewer", "and", "claims", "same label", "Cohen's κ"):
            table.add_column(column, justify="right" if column == "claims" else "left")
        for p in found.pairs:
            a = p.agreement
            table.add_row(escape(p.first), escape(p.second), f"{a.n:,}", _interval(a.share), _interval(a.kappa))
        console.print(table)
    if found.open:
        shown = ", ".join(found.open[:MOST_SHOWN]) + (", …" if len(found.open) > MOST_SHOWN else "")
        say(f"{counted(len(found.open), 'open dispute')}: {shown}")
        say("leadline review export --need disputed gives them to an adjudicator.")
    say("")


def _interval(value: Interval) -> str:
    if value.value is None:
        return "n/a"
    if value.low is None or value.high is None:
        return f"{value.value:.2f}"
    return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"


def command(
    on: OneDay = None,
    start: FromAll = None,
    end: To = None,
    app: App = None,
    recipe: Annotated[
        str | None, optional("Name or hash of a recipe; every recipe of the config by default.", "--recipe")
    ] = None,
    as_json: Json = False,
    config: Config = CONFIG,
) -> None:
    """Show how much people have labeled, how far they agree, and what is in dispute."""
    run(config, recipe, app, days_or_all(on, start, end), as_json=as_json)
