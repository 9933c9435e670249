"""The page of a comparison: one file that needs no other, with the report's style in it.

It shows what `leadline compare --json` prints, in the same words as the terminal. Left out: what the numbers mean.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.publish.report.files import write
from tasks.publish.report.pages import render, style
from tasks.publish.report.text import number, plural

DIGITS = {"groundedness": 1}  # of 100; the others are of 1, and shown with 3
TITLES = {
    "judge": "Judges",
    "recipe": "Recipes",
    "generator": "Generators",
    "prompt": "Prompt versions",
    "dates": "Days",
}
PLACES = {
    "before": "measured on traces of the first range that both have judged",
    "after": "measured on traces of the second range that both have judged",
    "elsewhere": "measured on traces of other days that both have judged",
}
SOURCES = {"judge": "the judge asked again", "repeats": "the same questions asked again"}


def digits(number: str) -> int:
    """Digits that a number is shown with."""
    return DIGITS.get(number, 3)


def signed(value: float | None, places: int) -> str:
    """A difference with its sign, "n/a" where there is none."""
    return "n/a" if value is None else f"{value:+.{places}f}".replace("-", "−")


def difference(estimate: Mapping[str, Any], places: int) -> str:
    """A difference and its interval."""
    ends = (
        "" if estimate["low"] is None else f" [{signed(estimate['low'], places)}, {signed(estimate['high'], places)}]"
    )
    return signed(estimate["difference"], places) + ends


def probability(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "n/a"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def verdict(found: Mapping[str, Any]) -> str:
    """The main number's difference in a sentence."""
    main, number = found["main"], found["number"]
    name = number.replace("_", " ")
    if main["difference"] is None:
        return f"No difference in {name} can be told: one side has no score."
    told = f"{name.capitalize()}, B − A: {difference(main, digits(number))}"
    if main["p"] is None:
        return f"{told}; too few questions for an interval."
    apart = "the two are told apart" if main["p"] < 0.05 else "the two are not told apart"
    return f"{told}, p {probability(main['p']) if main['p'] < 0.001 else '= ' + probability(main['p'])}: {apart}."


def within(interval: Mapping[str, Any]) -> str:
    """A value and its interval."""
    ends = "" if interval["low"] is None else f" [{number(interval['low'], 3)}, {number(interval['high'], 3)}]"
    return number(interval["value"], 3) + ends


def gained(interval: Mapping[str, Any]) -> str:
    """A difference of two shares or kappas, and its interval."""
    return difference({**interval, "difference": interval["value"]}, 3)


def against_people(of: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The measures by which two sides are held against people, with their names."""
    return [("balanced accuracy, supported or not", of["accuracy"]), ("Cohen's kappa of the labels", of["kappa"])]


def reviewed(of: Mapping[str, Any]) -> str:
    """What two sides are held against people on."""
    left_out = f"; left out, since picked for their labels: {of['picked']:,}" if of["picked"] else ""
    return f"Against people, on {plural(of['n'], 'claim')} of {plural(of['questions'], 'question')}{left_out}"


def signal(noise: Mapping[str, Any], number: str) -> str:
    """What identical runs differ by, in a sentence."""
    source, spread, ratio = SOURCES[noise["source"]], noise["spread"], noise["ratio"]
    if spread is None:
        return f"Signal to noise, {source}: n/a. {noise['note']}."
    if not spread:
        return f"Signal to noise, {source}: identical runs do not differ. {noise['note']}."
    places = digits(number) + 1
    said = "n/a" if ratio is None else f"{ratio:.1f}"
    return f"Signal to noise, {source}: {said} (identical runs differ by ± {spread:.{places}f}). {noise['note']}."


def write_page(path: Path, found: Mapping[str, Any]) -> None:
    """Write the page of a comparison.

    Args:
        found: `Comparison.as_dict()`.

    Raises:
        LeadlineError: It can't be written.
    """
    labels = found["labels"]
    html = render(
        "compare",
        found=found,
        title=TITLES[found["kind"]],
        verdict=verdict(found),
        signals=[signal(s, found["number"]) for s in found["signal"]],
        scale={g["number"]: _reach([g["estimate"]]) for g in found["estimates"]},
        group_reach=_reach([g["estimate"] for g in (*found["by_app"], *found["by_generator"])]),
        shift_reach=_reach([s[part] for s in found["shifts"] for part in ("total", "product", "judge")]),
        place_words=PLACES,
        used=used(labels["matrix"]) if labels else [],
        agreements=[(name, of) for _, name, of in labels["groups"]] if labels else [],
        outcome_names=[o for o in found["outcome_order"] if any(o in side for side in found["outcomes"] or ())],
        against=against_people(found["people"]) if found["people"] else [],
        reviewed=reviewed(found["people"]) if found["people"] else "",
        within=within,
        gained=gained,
        digits=digits,
        signed=signed,
        difference=difference,
        probability=probability,
        css=Markup(style()),  # noqa: S704 - our own file
    )
    write(path, html)


def used(matrix: Sequence[Sequence[int]]) -> list[int]:
    """Outcomes that either side gave some claim, by their place in the matrix."""
    return [i for i, row in enumerate(matrix) if sum(row) + sum(other[i] for other in matrix)]


def _reach(estimates: Sequence[Mapping[str, Any]]) -> float:
    """How far the widest interval reaches from 0, for the bars."""
    ends = (abs(e[k]) for e in estimates for k in ("low", "high", "difference") if e[k] is not None)
    return max(ends, default=0.0) or 1.0
