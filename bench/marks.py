"""Marks around figures in pages: `<!-- figure: NAME -->` and `<!-- /figure -->`, which no reader sees.

A figure is a block or a number within a sentence. The name of a figure that `python -m training report` gives starts
with `judge/`; names without a slash are those of `scripts/figures.py`. Left out: where figures come from.
"""

import re
from collections.abc import Mapping

_MARKED = re.compile(
    r"(?P<open><!-- figure: (?P<name>(?:(?P<source>\w+)/)?\w+) -->)(?P<shown>.*?)(?P<close><!-- /figure -->)", re.DOTALL
)


def filled(page: str, known: Mapping[str, str], source: str | None = None) -> str:
    """The page with the figures of one source as they are; those of others stay.

    Args:
        known: Figures by their whole names.
        source: What their names start with, before the slash.

    Raises:
        SystemExit: A mark of this source names none of them.
    """

    def figure(match: re.Match[str]) -> str:
        if match["source"] != source:
            return match[0]
        if match["name"] not in known:
            names = ", ".join(sorted(known))
            raise SystemExit(f"No figure is named {match['name']!r}; there are {names}.")
        return match["open"] + known[match["name"]] + match["close"]

    return _MARKED.sub(figure, page)


def shown(page: str, source: str | None = None) -> list[tuple[str, str]]:
    """Names of one source's figures that a page shows, and what stands there, in order."""
    return [(m["name"], m["shown"]) for m in _MARKED.finditer(page) if m["source"] == source]
