"""Which passages stand in a prompt that was logged, and in which order: `[3]` means the third passage of the prompt."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tasks.sources.spans.texts import Document

PREFIX = 120  # characters by which a passage that was cut off in the prompt is found
SHORT = 10  # characters: a shorter passage may stand in a prompt by chance
HEAD = 12  # characters by which the beginning of one is found at the end of a message


def in_prompt(
    chosen: Sequence[Document],
    pool: Sequence[Document],
    prompt: Sequence[str],
    copies: Mapping[str, int],
    queries: Sequence[str],
) -> list[Document] | None:
    """The passages that stand in the prompt, in its order; None where it can't tell.

    A passage counts in the last message that holds it. The prompt can only tell where at least one stands there
    unchanged: then the application copies texts, and what is missing was left out. But the log may have cut the prompt
    off: what is missing then comes last. Passages without a text or with a short one keep their places where the order
    is that of the search.

    Args:
        chosen: What the prompt should hold; `pool` is everything that was found.
        copies: How often each text was found: a copy in the prompt takes a number too.
        queries: What was asked; a prompt without any of them was cut off, or says nothing of it.
    """
    texts = {text: flat(text) for text in {d.text for d in (*chosen, *pool)}}
    by_text: dict[str, list[Document]] = defaultdict(list)
    for document in chosen:
        by_text[texts[document.text]].append(document)
    for document in pool:
        by_text.setdefault(texts[document.text], [document])
    by_text = {text: same for text, same in by_text.items() if len(text) >= SHORT}
    taken: list[list[tuple[int, int]]] = [[] for _ in prompt]
    places: dict[str, list[tuple[int, int]]] = {}
    longest_first = sorted(by_text, key=lambda t: (-len(t), t))
    for text in longest_first:
        _place(text, text, max(1, copies.get(text, 1)), prompt, taken, places)
    if not places:
        return None
    cut = [text for text in by_text if text not in places and any(_ends_inside(piece, text) for piece in prompt)]
    for text in longest_first:
        if text not in places and len(text) > PREFIX:
            _place(text, text[:PREFIX], 1, prompt, taken, places)
    seen: list[Document] = []
    for _, text, n in sorted((place, text, n) for text, found in places.items() for n, place in enumerate(found)):
        same = by_text[text]
        seen.append(same[min(n, len(same) - 1)])
    if cut or not any(query in piece for query in queries for piece in prompt):
        seen += [d for d in chosen if (text := texts[d.text]) in by_text and text not in places]
    there = set(map(id, seen))
    short = [d for d in chosen if texts[d.text] not in by_text]
    kept = [d for d in chosen if id(d) in there or d in short]
    if [id(d) for d in kept if d not in short] == list(map(id, seen)):
        return kept
    return seen + [d for d in short if d.text.strip()]


def _ends_inside(piece: str, text: str) -> bool:
    """Whether a message ends in the middle of a passage."""
    at = piece.rfind(text[:HEAD])
    return at >= 0 and len(piece) - at < len(text) and text.startswith(piece[at:])


def _place(
    text: str,
    wanted: str,
    most: int,
    prompt: Sequence[str],
    taken: list[list[tuple[int, int]]],
    places: dict[str, list[tuple[int, int]]],
) -> None:
    """Note where a text, or what is left of it, stands in the last message that holds it."""
    for n in range(len(prompt) - 1, -1, -1):
        if starts := _free(prompt[n], wanted, taken[n], most):
            places[text] = [(n, start) for start in starts]
            return


def _free(prompt: str, text: str, taken: list[tuple[int, int]], most: int) -> list[int]:
    """Where a text starts in the prompt, outside of longer texts; marks these places as taken."""
    starts: list[int] = []
    at = prompt.find(text)
    while at >= 0 and len(starts) < most:
        end = at + len(text)
        n = bisect_left(taken, (at, end))
        overlaps = (n < len(taken) and taken[n][0] < end) or (n > 0 and taken[n - 1][1] > at)
        if not overlaps:
            taken.insert(n, (at, end))
            starts.append(at)
        at = prompt.find(text, at + 1 if overlaps else end)
    return starts


def flat(text: str) -> str:
    """A text with single spaces: prompts break lines elsewhere."""
    return " ".join(text.split())
