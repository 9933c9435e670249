"""The opening lines of a night: what changed, what to read and label, what was refused, and what alerts don't watch.

The night page, the terminal, messages and JSON show the same lines. They contain ids, names and counts, never texts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from tasks.core.config import Alerts
from tasks.publish.report.night.trust import Trust
from tasks.publish.report.text import NOT_APPLICABLE, number, plural

SHOWN = 4  # items that a line names
READ = 5  # traces to read
NAMED = 3  # of these, traces named by alerts


class Line(TypedDict):
    """One opening line.

    Attributes:
        traces: Traces to read, each with the reason.
        command: The command to run next.
    """

    about: Literal["changed", "read", "label", "refused", "not watched"]
    text: str
    traces: list[tuple[str, str]]
    command: str | None


def opening(
    page: Mapping[str, Any], trusted: Iterable[Trust], changed: Sequence[str], watch: Alerts, refused: str | None = None
) -> list[Line]:
    """Return the opening lines of a night. Lines with nothing to report are left out, except for the line on changes.

    Args:
        page: The results of `gather.gather` and `gather.refused`.
        changed: Changes since the night before (`index.changes`).
        refused: The command that lists the refused rows.
    """
    alerts = [change(a) for a in page["alerts"]]
    changes = _first([*alerts, *changed]) or "no watched number, prompt, retriever, generator or judge"
    to_label = [t for t in trusted if t.needed]
    command = next((t.command for t in to_label if t.command), None)
    found = [
        _line("changed", changes),
        _line("read", traces=_to_read(page)),
        _line("label", _first([_labels(t) for t in to_label]), command=command),
        _line("refused", _refused(page["quarantine"]), command=refused),
        _line("not watched", _not_watched(page, watch)),
    ]
    return [line for line in found if line["text"] or line["traces"]]


def in_words(line: Line) -> str:
    """Format a line without its command."""
    return "; ".join(filter(None, (line["text"], *(f"{trace_id} ({why})" for trace_id, why in line["traces"]))))


def change(alert: Mapping[str, Any]) -> str:
    """Describe an alert or its end, with the layer that likely caused it."""
    layer = f", likely layer {alert['layer']}" if alert["layer"] else ""
    return f"{title(alert)}{layer}" if alert["fired"] else f"back to normal: {title(alert)}"


def title(alert: Mapping[str, Any]) -> str:
    """Describe a change of a number in one line."""
    went = "fell" if alert["direction"] == "down" else "rose"
    digits = digits_of(alert)
    by, before, now = (f"{abs(alert[c]):.{digits}f}" for c in ("change", "baseline_mean", "mean"))
    name = alert["number"].replace("_", " ").capitalize()
    return f"{name} of {alert['app']} · {alert['generator']} {went} by {by} ({before} → {now})"


def digits_of(alert: Mapping[str, Any]) -> int:
    """Decimals for the numbers of an alert."""
    return 1 if alert["number"] == "groundedness" else 3


def _line(
    about: Literal["changed", "read", "label", "refused", "not watched"],
    text: str = "",
    traces: Sequence[tuple[str, str]] = (),
    command: str | None = None,
) -> Line:
    return {"about": about, "text": text, "traces": list(traces), "command": command}


def _first(parts: Sequence[str], between: str = "; ") -> str:
    """List the first parts and the number of further ones."""
    more = [f"{len(parts) - SHOWN} more"] if len(parts) > SHOWN else []
    return between.join([*parts[:SHOWN], *more])


def _to_read(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Traces named by alerts, then traces with the most evidence of an error."""
    named = {t: "named by a change" for a in page["alerts"] if a["fired"] for t in a["worst_trace_ids"] or ()}
    found = dict(list(named.items())[:NAMED])
    main = page["metrics"][0]
    for row in page["to_read"]:
        counts = ("claims_to_check", "to check"), ("claims_contradicted", "contradicted"), ("claims_misused", "misused")
        claims = [f"{row[column]} {what}" for column, what in counts if row[column]]
        score = NOT_APPLICABLE if row["score"] is None else number(row["score"], main.digits)
        found.setdefault(row["trace_id"], ", ".join(claims) or f"{main.title.lower()} {score}")
    return list(found.items())[:READ]


def _labels(trust: Trust) -> str:
    if trust.state == "unchecked":
        return f"{plural(trust.needed, 'answer')} of {trust.app} (its judge was never checked)"
    return f"{trust.needed} more of {trust.app} (its judge's accuracy is {trust.accuracy}; for ± 0.05)"


def _refused(reasons: Sequence[Mapping[str, Any]]) -> str:
    if not reasons:
        return ""
    by_reason = [f"{r['reason']} {r['n']}" for r in reasons]
    return f"{plural(sum(r['n'] for r in reasons), 'row')}: {_first(by_reason)}"


def _not_watched(page: Mapping[str, Any], watch: Alerts) -> str:
    """Apps and generators for which no alert can fire: too few traces tonight, or too few nights."""
    if not watch.numbers:
        return "all numbers: alerts.numbers is empty in the config"
    nights: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in page["history"]:
        nights[row["app"], row["generator"]] += row["n_scored"] >= watch.least_traces
    wanted = watch.least_nights + 1  # tonight and the nights before it
    why: defaultdict[str, list[str]] = defaultdict(list)
    for group in page["groups"]:
        at = group["app"], group["generator"]
        scored = (group["metrics"].get(page["metrics"][0].name) or {"n_scored": 0})["n_scored"]
        if scored < watch.least_traces:
            why[f"alerts need {watch.least_traces} scored traces"].append(f"{' · '.join(at)} has {scored}")
        elif nights[at] < wanted:
            enough = f"alerts need {wanted} nights with {watch.least_traces} scored traces"
            why[enough].append(f"{' · '.join(at)} has {nights[at]}")
    return "; ".join(f"{reason}: {_first(groups, ', ')}" for reason, groups in why.items())
