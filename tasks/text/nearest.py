"""The few sentences of a text that share most with a claim: what a small model reads best. Pure functions.

Left out: meaning. A sentence in other words than the claim's is not found; the whole text is there for that.
"""

import math
from collections import Counter
from collections.abc import Sequence

from tasks.text import overlap
from tasks.text.sentences import sentences

COUNT = 3
ROW = 30  # words, at most: a longer line with bars is a page without line breaks


def nearest(text: str, claim: str, count: int = COUNT, sure: Sequence[str] = ()) -> str:
    """The sentences of a text that cover most of a claim's words, in the order of the text.

    Each one in turn is the sentence that adds most: a word of the claim weighs by how few sentences have it, and half
    of that where a sentence chosen before has it too. Of equals the one next to the first choice counts.

    Args:
        count: Number of sentences, at most.
        sure: Sentences of the text that are chosen first, also if they are more.
    """
    found = units(text)
    if len(found) <= count:
        return text
    bags = [_words(unit) for unit in found]
    wanted = _words(claim)
    common = Counter(word for bag in bags for word in bag & wanted)
    weight = {word: math.log1p(len(found) / n) for word, n in common.items()}
    chosen = [i for i, unit in enumerate(found) if any(unit in sentence for sentence in sure)]
    weight |= {word: weight[word] / 2 for i in chosen for word in bags[i] & wanted}
    while len(chosen) < count:
        rest = [i for i in range(len(found)) if i not in chosen]
        best = max(rest, key=lambda i: (sum(weight[w] for w in bags[i] & wanted), -abs(i - (chosen or [0])[0])))
        chosen.append(best)
        weight |= {word: weight[word] / 2 for word in bags[best] & wanted}
    return " ".join(found[i] for i in sorted(chosen))


def units(text: str) -> list[str]:
    """Sentences and lines; the row of a table keeps its cells together."""
    found = []
    for line in text.splitlines():
        row = " | " in line and len(line.split()) <= ROW
        found += [line.strip()] if row else [sentence.text for sentence in sentences(line)]
    return found


def _words(text: str) -> frozenset[str]:
    """Stems of the content words, and the values of numbers however they are written."""
    side = overlap.read(text)
    return side.bag | side.values
