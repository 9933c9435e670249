"""Selects the few sentences of a text that share most words with a claim, for small models. Pure functions.

Left out: meaning. Paraphrased sentences are not found, so judges read the whole text too.
"""

import math
from collections import Counter
from collections.abc import Sequence

from tasks.text import overlap
from tasks.text.sentences import sentences

COUNT = 3
ROW = 30  # maximum words of a row; a longer line with bars is a page without line breaks


def nearest(text: str, claim: str, count: int = COUNT, sure: Sequence[str] = ()) -> str:
    """The sentences of a text that cover most of a claim's words, in the order of the text.

    Sentences are chosen one by one, by the total weight of the claim's words in them. A word weighs more the fewer
    sentences have it, and half as much after each chosen sentence that has it. Ties go to the sentence nearest to the
    first choice.

    Args:
        count: Maximum number of sentences.
        sure: Sentences of the text that are always chosen, even if they exceed `count`.
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
    """Sentences and lines. A table row stays whole."""
    found = []
    for line in text.splitlines():
        row = " | " in line and len(line.split()) <= ROW
        found += [line.strip()] if row else [sentence.text for sentence in sentences(line)]
    return found


def _words(text: str) -> frozenset[str]:
    """Stems of the content words, and the values of numbers in any format."""
    side = overlap.read(text)
    return side.bag | side.values
