"""`leadline review agreement`: how much people have labeled, how far they agree, and what they disagree on."""

from dataclasses import asdict
from typing import Annotated

from rich.console import Console

from flows.console import counted, interval, print_json, print_lines, table
from flows.options import App, Config, FromAll, Json, OneDay, To, days_or_all, optional
from tasks.core.config import load_nightly, recipes_of
from tasks.core.paths import CONFIG
from tasks.review.agreement import Found, reviewers_agreement
from tasks.review.export import Scope, scope_of
from tasks.store.warehouse import reading

MOST_SHOWN = 10  # open disputes


def _show(recipe: str, found: Found) -> None:
    print_lines(f"Recipe {recipe}")
    if not found.claims:
        print_lines("No claim is labeled.\n")
        return
    by = ", ".join(f"{n:,} by {counted(k, 'reviewer')}" for k, n in found.by_reviewers.items())
    print_lines(
        f"{counted(found.claims, 'claim')} labeled: {by}; {found.adjudicated:,} adjudicated.",
        f"Outcomes: {', '.join(f'{name} {n:,}' for name, n in sorted(found.outcomes.items()))}.",
        f"Reviewers: {', '.join(f'{name} {n:,}' for name, n in found.reviewers.items())}.",
    )
    if found.shared:
        print_lines(
            f"\nOver the {counted(found.shared, 'claim')} that at least two labeled:",
            f"  same label          {interval(found.share)}",
            f"  Krippendorff's α    {interval(found.alpha)}",
        )
        pairs = [(p.first, p.second, p.agreement) for p in found.pairs]
        rows = [(a, b, f"{of.n:,}", interval(of.share), interval(of.kappa)) for a, b, of in pairs]
        Console().print(table("", ("reviewer", "and", "claims", "same label", "Cohen's κ"), rows, numbers={"claims"}))
    if found.open:
        shown = ", ".join(found.open[:MOST_SHOWN]) + (", …" if len(found.open) > MOST_SHOWN else "")
        print_lines(f"{counted(len(found.open), 'open dispute')}: {shown}")
        print_lines("leadline review export --need disputed gives them to an adjudicator.")
    print_lines("")


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
    days = days_or_all(on, start, end)
    nightly = load_nightly(config)
    with reading(nightly.warehouse) as reader:
        if recipe:
            scopes = {recipe: scope_of(reader, recipe, app, *days)}
        else:  # one of them may have no scores yet
            names = [chosen.recipe.name for chosen in recipes_of(nightly, config)]
            scopes = {name: Scope(name, None, app, *days) for name in names}
        found = {name: reviewers_agreement(reader, scope) for name, scope in scopes.items()}
    for name, of in found.items():
        if as_json:
            print_json({"recipe": name, **asdict(of)})
        else:
            _show(name, of)
