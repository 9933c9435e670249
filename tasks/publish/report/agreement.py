"""The page of an agreement, and the words that it shares with the terminal.

It shows what `leadline agreement --json` prints: ids, and no text of a trace. Left out: what the numbers mean.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.publish.report.comparison import used, within
from tasks.publish.report.files import write
from tasks.publish.report.pages import render, style, words
from tasks.publish.report.text import count, number, percent, plural

CLAIM_COLUMNS = ("claims", "equal", "Cohen's kappa", "balanced accuracy")
LABEL_COLUMNS = ("A", "B", "both", "Cohen's kappa, against the rest", "B's that A gave too")
GRADE_COLUMNS = ("graded by both", "Cohen's kappa", "weighted kappa", "rank correlation")
MORE_COLUMNS = ("equal", "balanced accuracy", "graded or N/A", "Cohen's kappa of that")
MEASURES = ("share", "kappa", "accuracy")
Rows = list[tuple[str, tuple[str, ...]]]


def claim_rows(claims: Mapping[str, Any]) -> Rows:
    """Agreement on the four labels, and on "supported or not", of all and of each app."""
    return [
        (f"{of['name'] or 'all'}{kind}", (count(of[on]["n"]), *(within(of[on][m]) for m in MEASURES)))
        for of in (claims["whole"], *claims["by_app"])
        for on, kind in (("labels", ""), ("supported", ", supported or not"))
    ]


def label_rows(claims: Mapping[str, Any]) -> Rows:
    """Each label against the rest."""
    return [
        (
            words(of["label"]),
            (*(count(of[c]) for c in ("n_a", "n_b", "both")), within(of["kappa"]), within(of["recall"])),
        )
        for of in claims["each"]
    ]


def grade_rows(grades: Mapping[str, Any]) -> Rows:
    """Agreement on each grade, of all and of each app; nothing where a measure says nothing new."""
    return [
        (
            name,
            (
                count(of["graded"]["n"]),
                within(of["graded"]["kappa"]),
                "" if of["weighted"] is None else within(of["weighted"]),
                within(of["rank"]),
            ),
        )
        for name, of in _named(grades)
    ]


def more_rows(grades: Mapping[str, Any]) -> Rows:
    """What else there is of each grade: whether it applies at all is a question of its own."""
    return [
        (
            name,
            (
                within(of["graded"]["share"]),
                within(of["graded"]["accuracy"]),
                count(of["n_applies"]),
                within(of["applies"]),
            ),
        )
        for name, of in _named(grades)
    ]


def matrix(of: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """The outcomes in use, and how often A gave the one of the row and B that of the column."""
    shown = used(of["matrix"])
    names = [words(of["outcomes"][i]) for i in shown]
    rows = ((name, tuple(count(of["matrix"][i][j]) for j in shown)) for name, i in zip(names, shown, strict=True))
    return names, list(rows)


def value(outcome: str, of: float | None) -> str:
    """A grade as a person writes it."""
    return words(outcome) if of is None else number(of, 0 if of == int(of) else 2)


def verdict(found: Mapping[str, Any]) -> str:
    """How far the two agree, in a sentence each for labels and grades."""
    return " ".join(_sentences(found)) or "Nothing that both have said enters the numbers."


def write_page(path: Path, found: Mapping[str, Any]) -> None:
    """Write the page of an agreement.

    Args:
        found: `Agreed.as_dict()`.

    Raises:
        LeadlineError: It can't be written.
    """
    claims, grades = found["claims"], found["grades"]
    html = render(
        "agreement",
        found=found,
        verdict=verdict(found),
        claim_columns=CLAIM_COLUMNS,
        label_columns=LABEL_COLUMNS,
        grade_columns=GRADE_COLUMNS,
        more_columns=MORE_COLUMNS,
        claim_rows=claim_rows(claims) if claims else [],
        label_rows=label_rows(claims) if claims else [],
        grade_rows=grade_rows(grades) if grades else [],
        more_rows=more_rows(grades) if grades else [],
        matrix=matrix,
        value=value,
        css=Markup(style()),  # noqa: S704 - our own file
    )
    write(path, html)


def _named(grades: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for grade in grades["each"]:
        name = words(grade["grade"])
        yield name, grade["whole"]
        for of in grade["by_app"]:
            yield f"{name}, {of['name']}", of


def _sentences(found: Mapping[str, Any]) -> Iterator[str]:
    if found["claims"]:
        of = found["claims"]["whole"]["labels"]
        told = f"Of {plural(of['n'], 'claim')} that both labelled, {percent(of['share']['value'])} have the same label"
        yield f"{told}: kappa {within(of['kappa'])}."
    for grade in found["grades"]["each"] if found["grades"] else ():
        of = grade["whole"]["graded"]
        told = f"{words(grade['grade']).capitalize()}: of {plural(of['n'], 'answer')} that both graded, "
        rank = within(grade["whole"]["rank"])
        yield f"{told}{percent(of['share']['value'])} have the same grade, rank correlation {rank}."
