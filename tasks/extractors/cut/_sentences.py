"""Sentences of running text, by the rules of its language (sentencex)."""

import re
from collections.abc import Iterator
from itertools import pairwise

import sentencex

from tasks.extractors.cut.markdown import Block, encodable
from tasks.text.spans import within

# sentencex takes quadratic time with many quotes and brackets, so a longer sentence is cut.
_WINDOW = 4_000
# "1." or "a)": the number of the following text, not a sentence.
_NUMBER = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])[.)]\W*")
_NUMBER_AT_END = re.compile(r"(?<=[:;])\s+\(?\d{1,2}[.)]\s*$")
_TINY = re.compile(r"\s*[^\W_]{1,2}\W*")
# Lines of a paragraph that neither are a sentence nor continue in one: a lead-in, a line in bold.
_LINE = re.compile(r"[:：][*_\s]*\n\s*(?=\S)|(?<=\*\*)[ \t]*\n\s*(?=\S)")
# Ends that sentencex misses: after a unit, before an inverted mark, in scripts without spaces.
_END = re.compile(
    r"\d[\s\u00a0]?(?:[munkc]?[gm]|[mc]?l|h|min|s|k?W|kWh|°C|%|[kMGT]B|km/h|€|EUR|USD)\."
    r"(?=\s+[^\W\d_a-z])|[.!?](?=\s+[¿¡])|\blit\. [a-z]\.(?=\s+[^\W\d_a-z])|"
    r"\b(?:me|us|it|you|him|them|so|too|do|go|is|out|up)\.(?=\s+[A-Z][a-z])|"
    r"[。！？]+[」』”）)]*(?!\s*[」』”）)]|$)"
)
_STOP = re.compile(r"[.!?。！？]")  # every match of `_END` contains one
_SHORTENED = re.compile(
    r"\b(?:tsp|tbsp|approx|min|max|incl|excl|ca|vol|dept|est|ext|figs?|nos?|pp?|resp|art|sec|ch|abs|nr|bzw|evtl|ggf|"
    r"inkl|lit|hrs?|mins?|secs?|n|num|núm|pág)\.\s*$",
    re.IGNORECASE,
)
_TITLES = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Hr|Fr|Sra?|Dra?|Mme|Dott)\.\s*$")
_GOES_ON = re.compile(r"\s*[a-zà-ÿ0-9(]")
# German writes ordinals with a full stop ("der 1. Klasse"). One of these words suggests the start of a sentence.
_GERMAN_START = re.compile(
    r"\s*(?:Der|Die|Das|Den|Dem|Ein|Eine|Einen|Er|Sie|Es|Wir|Ich|Du|Ihr|Man|Bitte|Danach|Dann|Wenn|Falls|Bei|Für|In|Im|Am|An|"
    r"Zum|Zur|Zu|Mit|Ohne|Nach|Vor|Auch|Alle|Diese[rsnm]?|Dies|Dort|Hier|So|Als|Ab|Aus|Auf|Unter|Über|Wer|Was|Wie|Wo|Kann|"
    r"Können|Soll|Möchten|Danke|Viel|Gerne?)\b"
)
_ORDINAL = re.compile(r"(?<![\d.,])\d{1,2}\.\s*$")


def sentences(answer: str, block: Block, start: int, end: int, language: str | None) -> list[tuple[int, int]]:
    """Spans of the sentences in a part of a block, with the white space between them."""
    forced = {at for at in block.breaks if start < at < end}
    if "\n" in answer[start:end]:
        forced |= {m.end() for m in _LINE.finditer(answer, start, end)}
    if _STOP.search(answer, start, end):
        forced |= {m.end() for m in _END.finditer(answer, start, end)}
    edges = sorted({start, *forced, end})
    return [
        span
        for left, right in pairwise(edges)
        for span in _sentences(_without_marks(answer, block, left, right), left, language or "en")
    ]


def _without_marks(answer: str, block: Block, start: int, end: int) -> str:
    """The text at the same length, with code and tags replaced, so that full stops in them end no sentence.

    Tags become asterisks, which sentencex treats as markup; spaces would mislead it.
    """
    if not block.marks and not block.code:
        return answer[start:end]
    pieces: list[str] = []
    position = start
    hidden = [(m[0], m[1], "*") for m in within(block.marks, start, end)]
    hidden += [(span[0], span[1], "x") for span in within(block.code, start, end)]
    for left, right, filler in sorted(hidden):
        if left >= position:
            pieces += (answer[position:left], filler * (right - left))
            position = right
    return "".join((*pieces, answer[position:end]))


def _sentences(text: str, offset: int, language: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a text that starts at `offset`."""
    begin = 0  # of the current sentence: a number waits for the text it numbers
    for _, end in _windows(text, language):
        stop = end
        if end < len(text):
            if not text[end - 1].isspace() and (text[end].islower() or text[end] in "ºª"):
                continue  # "n.º 5"
            if _TINY.fullmatch(text, end):
                continue  # "lit. d"
            if _SHORTENED.search(text, max(begin, end - 12), end) and _GOES_ON.match(text, end):
                continue  # "1 tsp. cumin"
            if _TITLES.search(text, max(begin, end - 6), end):
                continue
            if (
                language == "de"
                and not _GERMAN_START.match(text, end)
                and _ORDINAL.search(text, max(begin, end - 6), end)
            ):
                continue  # "der 1. Klasse"
            if _NUMBER.fullmatch(text, begin, end):
                continue
            if number := _NUMBER_AT_END.search(text, max(begin, end - 10), end):
                stop = number.start()
        yield offset + begin, offset + stop
        begin = stop


def _windows(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Spans from sentencex, which reads the text in windows."""
    start = 0
    while start < len(text):
        window = encodable(text[start : start + _WINDOW])
        bounds = [(b["start_index"], b["end_index"]) for b in sentencex.get_sentence_boundaries(language, window)]
        if start + _WINDOW < len(text):
            # The last sentence may continue: read it again with the next window, unless it fills this one.
            if len(bounds) > 1 and bounds[-1][0] > _WINDOW // 2:
                bounds.pop()
            elif (space := window.rfind(" ", _WINDOW // 2)) > 0:
                bounds = [(a, min(b, space)) for a, b in bounds if a < space]
        for a, b in bounds:
            yield start + a, start + b
        start += bounds[-1][1] if bounds else len(window)
