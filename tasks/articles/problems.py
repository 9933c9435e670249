"""Problems of articles that are not self-contained: length, phrases, duplicates. Pure functions.

The checks do not judge the content of an article.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from tasks.articles.phrases import dangling, forms, leans
from tasks.articles.split import Article, Problem

KINDS = {
    "too_short": "fewer words than the minimum",
    "too_long": "more words than the maximum",
    "leans_on_others": 'a phrase such as "see above" or "the previous section"',
    "dangling_start": 'the first word points back: "It also", "This means", "However,"',
    "duplicate_text": "the same text as another article",
    "empty_title": "a heading without words",
    "duplicate_title": "the same title as another article",
    "no_headings": "a document without headings to cut at",
    "uncertain_start": "a PDF outline's heading that stands on no line of its page",
}
_WORD = re.compile(r"\w+")


def check(articles: Sequence[Article], min_words: int, max_words: int) -> list[Article]:
    """The articles of a whole base with their problems, in the order of `KINDS`."""
    order = list(KINDS)
    texts = _groups((_WORD.findall(a.text.casefold()), a.article_id) for a in articles)
    titles = _groups((_WORD.findall(a.title.casefold()), a.article_id) for a in articles)
    checked = []
    for a in articles:
        found = [*a.problems, *_lengths(a, min_words, max_words), *_texts(a)]
        found += _doubles("duplicate_text", "text", "keep one", a, texts.get(a.article_id, ()))
        found += _doubles("duplicate_title", "title", "say in it what it is about", a, titles.get(a.article_id, ()))
        checked.append(replace(a, problems=tuple(sorted(found, key=lambda p: order.index(p.kind)))))
    return checked


def _lengths(a: Article, min_words: int, max_words: int) -> Iterator[Problem]:
    if a.words < min_words:
        yield Problem("too_short", f"{_words(a)}, fewer than {min_words}: complete it, or merge it with another")
    elif a.words > max_words:
        yield Problem("too_long", f"{_words(a)}, more than {max_words}: divide it by headings")


def _words(a: Article) -> str:
    return f"{a.words:,} word{'' if a.words == 1 else 's'}"


def _texts(a: Article) -> Iterator[Problem]:
    phrases = leans(a.text, None if a.page else forms(a.text))
    if phrases:
        yield Problem("leans_on_others", f"{', '.join(repr(p) for p in phrases)}: name what is meant, or link to it")
    start = dangling(a.text)
    if start:
        yield Problem("dangling_start", f"begins with {start!r}: begin with the name of the thing")
    if not _WORD.search(a.title):
        yield Problem("empty_title", "its heading has no words: name it")


def _doubles(kind: str, what: str, remedy: str, a: Article, group: Sequence[str]) -> Iterator[Problem]:
    if len(group) > 1:
        other = next(i for i in group if i != a.article_id)
        more = f" and {len(group) - 2:,} more" if len(group) > 2 else ""
        yield Problem(kind, f"the same {what} as {other}{more}: {remedy}")


def _groups(keyed: Iterable[tuple[Sequence[Hashable], str]]) -> dict[str, list[str]]:
    """For each id, the ids that share its key; none for an empty key."""
    groups: defaultdict[tuple[Hashable, ...], list[str]] = defaultdict(list)
    for parts, one in keyed:
        if parts:
            groups[tuple(parts)].append(one)
    return {one: group for group in groups.values() for one in group}
