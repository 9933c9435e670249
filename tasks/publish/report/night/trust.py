"""Sentences on how far to trust a judge on an application's own traces, for the report and the terminal.

Method: docs/methods.md#how-far-to-trust-a-judge. The numbers are rows of `sql/report/trust.sql`.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasks.publish.report.text import count, number, percent, plural

WIDE = 0.2  # an interval of the balanced accuracy this wide (± 10 points) needs more labels
POOR = 0.6
ANSWERS = 30  # answers to label for a first estimate
AIM = 0.05  # half width of a sufficiently narrow interval
State = Literal["unchecked", "few", "checked"]


@dataclass(frozen=True, slots=True)
class Trust:
    """What the report shows about the judge of an app.

    Attributes:
        accuracy: The judge's balanced accuracy with its interval; "n/a" if unknown.
        agreement: A sentence on the judge's agreement with people.
        needed: Answers to label until the balanced accuracy is known to ± 5 points, estimated from the labels so far.
        command: The command to get more labels; None if there are enough.
        poor: Whether the balanced accuracy is below 0.6, near guessing.
        rest: Further sentences on abstentions, languages and noise.
        patterns: How often people disagree when the judge supports a claim, with and without a failure pattern. Empty
            if people labeled no claim with a pattern.
    """

    app: str
    state: State
    accuracy: str
    agreement: str
    needed: int
    command: str | None
    poor: bool
    rest: tuple[str, ...]
    patterns: str


def trust(row: Mapping[str, Any], option: str = "") -> Trust:
    """Return the sentences for one row.

    Args:
        option: The command line option that names the config, with a leading space.
    """
    command = f"leadline review export{option} --app {shlex.quote(row['app'])} --need random --count {ANSWERS}"
    state = _state(row)
    if state == "unchecked":
        agreement = f"Never checked on this application's traces. Label {ANSWERS} answers:"
    else:
        seen = f"On {plural(row['n_labels'], 'claim')} of {plural(row['n_questions'], 'question')} that people labeled"
        if row["accuracy"] is None:
            agreement = f"{seen}, all are supported or none is: that gives no accuracy. Label {ANSWERS} more answers:"
        else:
            accuracy, kappa = (_with_interval(row, name) for name in ("accuracy", "kappa"))
            agreement = f"{seen}, its balanced accuracy is {accuracy}, where guessing has 0.5, and its kappa {kappa}."
            agreement += f" That is uncertain. Label {ANSWERS} more answers:" if state == "few" else ""
    known = _with_interval(row, "accuracy")
    poor = row["accuracy"] is not None and row["accuracy"] < POOR
    wanted = None if state == "checked" else command
    rest = tuple(_rest(row, option))
    return Trust(row["app"], state, known, agreement, _needed(row), wanted, poor, rest, _patterns(row))


def _state(row: Mapping[str, Any]) -> State:
    if not row["n_labels"]:
        return "unchecked"
    low, high = row["accuracy_low"], row["accuracy_high"]
    return "checked" if low is not None and high - low <= WIDE else "few"


def _needed(row: Mapping[str, Any]) -> int:
    """Estimate the answers to label: the width of an interval shrinks with the square root of their number."""
    if row["accuracy_low"] is None:
        return ANSWERS
    half = float(row["accuracy_high"] - row["accuracy_low"]) / 2
    return max(0, math.ceil(round(int(row["n_questions"]) * ((half / AIM) ** 2 - 1), 6)))


def _rest(row: Mapping[str, Any], option: str) -> list[str]:
    found = []
    if row["n_claims"]:
        share = percent(row["n_unsure"], row["n_claims"])
        claims = plural(row["n_claims"], "claim")
        found.append(
            f"It is unsure of {share} of the night's {claims}: it gives its own label a probability below 0.6."
        )
    if row["n_unread"]:
        found.append(f"It does not read the language of {plural(row['n_unread'], 'claim')}.")
    if row["noise"] is None:
        found.append(f"Its noise is not measured (leadline noise{option}).")
    else:
        again = f"{percent(row['noise'])} of {plural(row['noise_n'], 'request')}"
        found.append(f"Asked again, it gives the same label to {again}.")
    return found


def _patterns(row: Mapping[str, Any]) -> str:
    if not row["n_to_check"]:
        return ""
    wrong = [
        f"{count(row[f'n_{name}_wrong'])} of {count(row[f'n_{name}'])} {kind}"
        f" ({_with_interval(row, f'{name}_wrong_share')})"
        for name, kind in (("to_check", "with a pattern"), ("unmarked", "without one"))
        if row[f"n_{name}"]
    ]
    return (
        f"Of the claims that the judge supports and that people labeled, people disagree on {', and on '.join(wrong)}."
    )


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return number(value) if low is None else f"{number(value)} [{number(low)}, {number(high)}]"
