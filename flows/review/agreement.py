"""`leadline review agreement`: number of labels, agreement of reviewers, and open disputes."""

from dataclasses import asdict
from functools import partial

from rich.console import Console

from flows.console import counted, emit, interval, print_lines, table
from flows.options import App, Config, Form, FromAll, OneDay, Output, Recipe, To, days_or_all
from tasks.core.config import load_nightly, recipes_of
from tasks.core.paths import CONFIG, config_option
from tasks.review.agreement import Found, reviewers_agreement
from tasks.review.export import Scope, scope_of
from tasks.store.warehouse import reading

MOST_SHOWN = 10  # open disputes to list


def _draw(recipe: str, found: Found, option: str, out: Console) -> None:
    say = partial(print_lines, out=out)
    say(f"Recipe {recipe}")
    if not found.claims:
        say("No claim is labeled.\n")
        return
    by = ", ".join(f"{n:,} by {counted(k, 'reviewer')}" for k, n in found.by_reviewers.items())
    say(
        f"{counted(found.claims, 'claim')} labeled: {by}; {found.adjudicated:,} adjudicated.",
        f"Outcomes: {', '.join(f'{name} {n:,}' for name, n in sorted(found.outcomes.items()))}.",
        f"Reviewers: {', '.join(f'{name} {n:,}' for name, n in found.reviewers.items())}.",
    )
    if found.shared:
        say(
            f"\nOver the {counted(found.shared, 'claim')} that at least two labeled:",
            f"  same label          {interval(found.share)}",
            f"  Krippendorff's α    {interval(found.alpha)}",
        )
        pairs = [(p.first, p.second, p.agreement) for p in found.pairs]
        rows = [(a, b, f"{of.n:,}", interval(of.share), interval(of.kappa)) for a, b, of in pairs]
        out.print(table("", ("reviewer", "and", "claims", "same label", "Cohen's κ"), rows, numbers={"claims"}))
    if found.open:
        shown = ", ".join(found.open[:MOST_SHOWN]) + (", …" if len(found.open) > MOST_SHOWN else "")
        say(f"{counted(len(found.open), 'open dispute')}: {shown}")
        say(f"leadline review export{option} --need disputed gives them to an adjudicator.")
    say("")


def command(
    recipe: Recipe = None,
    app: App = None,
    on: OneDay = None,
    start: FromAll = None,
    end: To = None,
    form: Form = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Show how much people have labeled, how far they agree, and what they dispute.

    Example: leadline review agreement --app support-bot
    """
    days = days_or_all(on, start, end)
    nightly = load_nightly(config)
    with reading(nightly.warehouse) as reader:
        if recipe:
            scopes = {recipe: scope_of(reader, recipe, app, *days)}
        else:  # a recipe may have no scores yet
            names = [chosen.recipe.name for chosen in recipes_of(nightly, config)]
            scopes = {name: Scope(name, None, app, *days) for name in names}
        found = {name: reviewers_agreement(reader, scope) for name, scope in scopes.items()}

    def draw(out: Console) -> None:
        for name, of in found.items():
            _draw(name, of, config_option(config), out)

    emit(form, output, draw, ({"recipe": name, **asdict(of)} for name, of in found.items()))
