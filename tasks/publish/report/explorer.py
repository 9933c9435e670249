"""The explorer of a night: a page whose script filters, sorts and searches all of its traces, without a server.

`explorer/rows.js` contains the columns to filter and sort by. Each `explorer/texts-N.js` contains the texts of up to
`SHARD` traces; the page loads it when the texts are shown or searched. These files are scripts because a page that is
opened from disk can't load data files. Their content is JSON, which the page inserts only as text nodes.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.publish.report import pages
from tasks.publish.report.files import write
from tasks.publish.report.text import slug
from tasks.publish.report.views import Row

CHARACTERS = 1_000  # shown of each question and answer
SHARD = 2_000  # traces per file of texts
MOST_VALUES = 200  # filter values per property; apps and generators have no limit
ALL = ("app", "generator")
LABELS = {  # filter value: "has a claim with this label", and the column with the count
    "supported": "claims_supported",
    "partially_supported": "claims_partial",
    "unsupported": "claims_unsupported",
    "contradicted": "claims_contradicted",
    "misused": "claims_misused",
    "to_check": "claims_to_check",
    "unjudged": "claims_unjudged",
    "abstained": "claims_abstained",
}


def tags(row: Row) -> list[str]:
    """The tags of a trace as shown on pages, such as `topic: returns`."""
    return [f"{name}: {value}" for name, value in sorted(dict(row["tags"] or ()).items())]


FACETS: Mapping[str, tuple[str, Callable[[Row], Iterable[str]]]] = {  # title, and the values of a trace
    "app": ("App", lambda r: [r["app"]]),
    "generator": ("Generator", lambda r: [r["generator"]]),
    "prompt": ("Prompt version", lambda r: [r["prompt_version"]] if r["prompt_version"] is not None else []),
    "tag": ("Tag", tags),
    "language": ("Language of a claim", lambda r: r["languages"] or ()),
    "diagnosis": ("Diagnosis", lambda r: [r["diagnosis"] or "none"]),
    "label": ("Has a claim", lambda r: [name for name, column in LABELS.items() if r[column]]),
    "pattern": ("Failure pattern", lambda r: r["patterns"] or ()),
    "review": ("Review", lambda r: [r["review"]]),
}
IN_WORDS = ("diagnosis", "label", "pattern", "review")
NUMBERS = ("score", "context_relevance", "answer_relevance")
COUNTS = ("claims_judged", "claims_misused", "claims_contradicted", "claims_to_check")
STATUSES = ("status", "context_relevance_status", "answer_relevance_status")


def write_explorer(folder: Path, night: date, rows: Sequence[Row], listing: Sequence[Row], **page: object) -> None:
    """Write `explorer.html` and the scripts that it loads.

    Args:
        folder: The folder of the night's page.
        rows: Rows of `listing.sql`; traces with a text come first.
        listing: The traces that have their own page, which are the first rows.
        page: Further values for the template: metric, method, total, up, switch.
    """
    metric: Any = page["metric"]
    questions: dict[str, int] = {}
    data = {
        "metric": {"title": metric.title, "digits": metric.digits},
        "characters": CHARACTERS,
        "shard": SHARD,
        "pages": [slug(r["trace_id"]) for r in rows[: len(listing)]],
        "texts": sum(r["has_text"] for r in rows),
        "ids": [r["trace_id"] for r in rows],
        # Small numbers instead of hashes: equal for equal questions, null if the text was removed.
        "question": [q and questions.setdefault(q, len(questions)) for q in (r["question_id"] for r in rows)],
        "time": [round(r["timestamp"].timestamp()) for r in rows],
        "facets": [_facet(name, title, rows, of) for name, (title, of) in FACETS.items()],
        **{name: [None if r[name] is None else round(r[name], 4) for r in rows] for name in NUMBERS},
        **{name: [r[name] for r in rows] for name in COUNTS},
        "statuses": {n: _coded([() if r[n] == "scored" else (pages.words(r[n]),) for r in rows]) for n in STATUSES},
    }
    write(folder / "explorer" / "rows.js", _call("rows", data))
    for start in range(0, len(rows), SHARD):
        shard = rows[start : start + SHARD]
        texts = [[_cut(r["question"]), _cut(r["answer"]), ", ".join(tags(r))] for r in shard]
        write(folder / "explorer" / f"texts-{start // SHARD}.js", _call(start // SHARD, texts))
    script = (pages.TEMPLATES / "explorer.js").read_text(encoding="utf-8")
    html = pages.render(
        "explorer",
        night=night,
        rows=rows,
        listing=listing,
        characters=CHARACTERS,
        script=Markup(script),  # noqa: S704 (our own file)
        digest=Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),  # noqa: S704 (base64)
        **page,
    )
    write(folder / "explorer.html", html)


def _facet(name: str, title: str, rows: Sequence[Row], of: Callable[[Row], Iterable[str]]) -> dict[str, object]:
    """A property to filter by: its most frequent values, and for each trace the index of its set of values."""
    found = [tuple(of(r)) for r in rows]
    counts = Counter(value for values in found for value in dict.fromkeys(values))
    most = sorted(counts.most_common(None if name in ALL else MOST_VALUES))
    names = list(LABELS) if name == "label" else [value for value, _ in most]
    place = {value: n for n, value in enumerate(names)}
    coded = _coded([tuple(place[v] for v in dict.fromkeys(values) if v in place) for values in found])
    shown = [pages.words(value) for value in names] if name in IN_WORDS else names
    return {"name": name, "title": title, "values": names, "shown": shown, "left": len(counts) - len(most), **coded}


def _coded(found: Sequence[tuple[object, ...]]) -> dict[str, object]:
    """Dictionary encoding: the distinct tuples, and the index of each row's tuple."""
    sets: dict[tuple[object, ...], int] = {}
    codes = [sets.setdefault(values, len(sets)) for values in found]
    return {"sets": list(sets), "codes": codes}


def _call(name: str | int, value: object) -> str:
    return f"leadline({pages.script_data(name)},{pages.script_data(value)});\n"


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"
