"""Phrases in an English text that refer to another text. Code is searched too. Pure functions."""

import re
from collections.abc import Set

import pyromark

_MENTIONED = "mentioned|described|explained|discussed|noted|stated|shown|introduced|defined|outlined|listed|given"
_SECTION = "(?:sub)?section|chapter|article|paragraph|topic"
_LEANS = re.compile(
    rf"""\b(?:
      (?:see|as|{_MENTIONED})\ (?:above|below)
    | (?:{_MENTIONED})\ (?:earlier|previously|before(?=[,.;:)]|$))
    | as\ (?:previously|already|earlier)\ (?:{_MENTIONED}|seen)
    | previously\ (?:mentioned|described|explained|discussed)
    | as\ we\ (?:saw|have\ (?:already\ )?(?:{_MENTIONED}|seen))
    | aforementioned | above[- ]mentioned
    | (?:previous|preceding|foregoing|earlier|following|next)\ (?:{_SECTION})s?
    | the\ (?:{_SECTION})s?\ (?:above|below)
    | (?:previous|preceding)\ page
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What a phrase points at, and the forms in which that can stand in the text.
_OBJECTS = (
    ("tables?", {"Table", "<table"}),
    ("figures?|diagrams?|images?|pictures?|screenshots?|illustrations?|charts?|graphs?", {"Image", "<img", "<svg"}),
    ("lists?", {"List", "<ul", "<ol"}),
    ("code|snippets?|listings?", {"CodeBlock", "Code", "<pre", "<code"}),
)
_POINTS = tuple(
    (
        re.compile(
            rf"""\b(?:
              the\ (?:following|above|preceding)\ (?:[\w-]+\ )?(?:{noun})
            | (?:the|this|these)\ (?:{noun})\ (?:above|below)
            )\b""",
            re.IGNORECASE | re.VERBOSE,
        ),
        wanted,
    )
    for noun, wanted in _OBJECTS
)
_TAG = re.compile(r"<(?:table|img|svg|ul|ol|pre|code)\b", re.IGNORECASE)
# "This page describes" points at the article itself, and "It is possible to" at nothing.
_ITSELF = (
    r"page|article|section|document|guide|chapter|topic|tutorial|manual|handbook|policy|reference|table|list|example"
    r"|faq|release|version|product|knowledge\ base"
)
_EMPTY = (
    "important|possible|impossible|recommended|necessary|best|better|easy|hard|difficult|common|worth|essential|likely"
    "|unlikely|advisable|useful|helpful|good|safe|crucial"
)
_DANGLING = re.compile(
    rf"""\A(?:\d+[.)]\s|[\W_])*  # bullets, numbers, emphasis
    (?P<words>(?:
      (?-i:[Ii]t)  # IT is something else
      (?!(?:['’]s|\s+(?:is|was|(?:may|can|might)\s+be))\s+(?:\w+ly\s+|also\s+|not\s+)?(?:{_EMPTY})\b)
    | (?:this|that|these|those)(?!\s+(?:\w+\s+)?(?:{_ITSELF})s?\b)
    | they|them|he|she|its|their|theirs|such|the\ (?:former|latter)|(?:both|all)\ of\ (?:these|them)
    )(?:['’]\w+)?
    | (?:also|however|therefore|thus|hence|consequently|additionally|furthermore|moreover|otherwise|instead|likewise
      |similarly|nevertheless|besides|then|in\ addition|as\ a\ result|in\ (?:that|this)\ case|in\ contrast),
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)


def leans(text: str, held: Set[str] | None) -> list[str]:
    """The phrases, lower case, by which a text leans on others.

    Args:
        held: `forms` of the text. None where they are unknown: then "the table below" counts as there.
    """
    flat = " ".join(text.split())
    found = [m[0] for m in _LEANS.finditer(flat)]
    if held is not None:
        found += [m[0] for pattern, wanted in _POINTS if not wanted & held for m in pattern.finditer(flat)]
    return list(dict.fromkeys(phrase.lower() for phrase in found))


def forms(markdown: str) -> set[str]:
    """Which tables, images, lists and code stand in a text: Markdown's names for them, and HTML's tags."""
    names = {tag.lower() for tag in _TAG.findall(markdown)}
    for event in pyromark.events(markdown, options=pyromark.Options.ENABLE_TABLES):
        if isinstance(event, dict):
            ((kind, value),) = event.items()
            if kind == "Start":
                names.add(value if isinstance(value, str) else next(iter(value)))
            elif kind == "Code":
                names.add(kind)
    return names


def dangling(text: str) -> str:
    """The first words of a text if they point back to another one, else an empty string."""
    match = _DANGLING.match(text)
    return " ".join(match["words"].removesuffix(",").split()) if match else ""
