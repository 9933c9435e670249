"""Replace figures between invisible marks in pages: `<!-- figure: NAME -->` and `<!-- /figure -->`.

A figure is a block or a number within a sentence. Names that start with `judge/` belong to `python -m training report`,
names without a slash to `scripts/figures.py`. Left out: computing figures.
"""

import re
from collections.abc import Mapping

_MARKED = re.compile(
    r"(?P<open><!-- figure: (?P<name>(?:(?P<source>\w+)/)?\w+) -->)(?P<shown>.*?)(?P<close><!-- /figure -->)", re.DOTALL
)


def filled(page: str, known: Mapping[str, str], source: str | None = None) -> str:
    """Replace the figures of one source in a page; figures of other sources are kept.

    Args:
        known: Figures by full name.
        source: Prefix of the names, before the slash.

    Raises:
        SystemExit: A mark of this source names an unknown figure.
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
    """Names and contents of one source's figures in a page, in order."""
    return [(m["name"], m["shown"]) for m in _MARKED.finditer(page) if m["source"] == source]
