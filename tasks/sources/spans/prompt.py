"""Find the passages in a logged prompt, and their order.

The order matters because a citation `[3]` means the third passage of the prompt.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tasks.sources.spans.texts import Document

PREFIX = 120  # characters to search for if the prompt contains only the beginning of a passage
SHORT = 10  # characters; a shorter passage may occur in a prompt by chance
HEAD = 12  # characters to search for at the end of a message that was cut off within a passage


def in_prompt(
    chosen: Sequence[Document],
    pool: Sequence[Document],
    prompt: Sequence[str],
    copies: Mapping[str, int],
    queries: Sequence[str],
) -> list[Document] | None:
    """Return the passages in the prompt, in the prompt's order; None if none is found unchanged.

    If at least one passage is in the prompt unchanged, the application copies texts, so missing passages were left out
    of the prompt. But if the log cut the prompt off, missing passages are added at the end. If a passage is in several
    messages, the last message counts. Passages that are shorter than `SHORT` or have no text can't be searched for.
    They keep their places if the prompt has the order of the search; otherwise those with a text are added at the end.

    Args:
        chosen: Passages that are expected in the prompt.
        pool: All passages that were found.
        prompt: Messages of the prompt, as returned by `flat`.
        copies: How often each text was found. Each copy in the prompt is numbered too.
        queries: The questions. A prompt that contains none of them is taken as cut off.
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
    """Record the places of `text` in the last message that contains `wanted`, the text or its beginning."""
    for n in range(len(prompt) - 1, -1, -1):
        if starts := _free(prompt[n], wanted, taken[n], most):
            places[text] = [(n, start) for start in starts]
            return


def _free(prompt: str, text: str, taken: list[tuple[int, int]], most: int) -> list[int]:
    """Return where a text starts in the prompt outside of taken places, and mark its places as taken."""
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
    """Collapse whitespace to single spaces: a prompt may break lines in other places."""
    return " ".join(text.split())
