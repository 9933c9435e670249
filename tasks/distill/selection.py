"""Which lessons a training set is made of: no repeats, split by question, balanced, and not too many (METHODS 10).

Pure and deterministic: what is kept is decided by hashes, so that the same lessons make the same set in any order, and
more of them move no question from one split to the other. Left out: where lessons come from and what they say
(`tasks/distill/export.py`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.core import keys

Split = Literal["train", "valid"]
SPLITS: tuple[Split, ...] = ("train", "valid")
_BITS = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson, but for its prompt.

    Attributes:
        look: Which of the student's prompts it is for.
        key: Hash of what is shown; equal ones of one look are the same lesson.
        question: Hash of the question that the answer belongs to.
        answer: What is balanced: a label, or a grade.
        reply: What the student is to say.
        place: Of all that the teacher judged, which it is; tells lessons apart.
    """

    look: str
    key: str
    question: str
    answer: str
    reply: str
    place: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A training set.

    Attributes:
        lessons: Of each split, in the order in which they were given.
        left_out: By look and reason (`repeated`, `balance`, `max`), how many were not taken.
    """

    lessons: Mapping[Split, Sequence[Candidate]]
    left_out: Mapping[str, Counter[str]]


def split_of(question: str, valid_share: float) -> Split:
    """Where a question's lessons go, whatever else there is."""
    drawn = int(keys.key("split", question, size=_BITS // 4), 16)
    return "valid" if drawn < valid_share * 2**_BITS else "train"


def choose(candidates: Iterable[Candidate], valid_share: float, balance: float | None, most: int | None) -> Chosen:
    """The training set that lessons make.

    Args:
        candidates: Of equal ones the first counts.
        valid_share: Share of the questions that are held out.
        balance: Most lessons of one answer for each of the rarest, in each split and look; None leaves all.
        most: Most lessons in all, the held-out ones a `valid_share` of them; as even over looks and answers as can be.
    """
    left_out: dict[str, Counter[str]] = {}
    groups: dict[Split, dict[tuple[str, str], list[Candidate]]] = {split: {} for split in SPLITS}
    seen: set[tuple[str, str]] = set()
    for lesson in candidates:
        dropped = left_out.setdefault(lesson.look, Counter())
        if (lesson.look, lesson.key) in seen:
            dropped["repeated"] += 1
            continue
        seen.add((lesson.look, lesson.key))
        of = groups[split_of(lesson.question, valid_share)]
        of.setdefault((lesson.look, lesson.answer), []).append(lesson)
    kept = {split: _balanced(of, balance, left_out) for split, of in groups.items()}
    room = _room({split: sum(map(len, of.values())) for split, of in kept.items()}, valid_share, most)
    return Chosen({split: _first(kept[split], room[split], left_out) for split in SPLITS}, left_out)


Groups = Mapping[tuple[str, str], Sequence[Candidate]]


def _balanced(groups: Groups, balance: float | None, left_out: Mapping[str, Counter[str]]) -> Groups:
    """The groups of one split, each in an order drawn by lot and cut to what its look's rarest answer allows."""
    rarest: dict[str, int] = {}
    for (look, _), its in groups.items():
        rarest[look] = min(rarest.get(look, len(its)), len(its))
    found = {}
    for (look, answer), its in sorted(groups.items()):
        drawn = sorted(its, key=lambda c: keys.key("draw", c.look, c.key))
        room = len(drawn) if balance is None else int(balance * rarest[look])
        left_out[look]["balance"] += len(drawn[room:])
        found[look, answer] = drawn[:room]
    return found


def _room(sizes: Mapping[Split, int], valid_share: float, most: int | None) -> Mapping[Split, int]:
    """How many lessons each split may hold."""
    if most is None or sum(sizes.values()) <= most:
        return sizes
    valid = max(min(round(most * valid_share), sizes["valid"]), most - sizes["train"])
    return {"train": most - valid, "valid": valid}


def _first(groups: Groups, room: int, left_out: Mapping[str, Counter[str]]) -> Sequence[Candidate]:
    """So many of one split, from all groups in turn."""
    turns = sorted((turn, *group) for group, its in groups.items() for turn in range(len(its)))
    for _, look, _ in turns[room:]:
        left_out[look]["max"] += 1
    taken = [groups[look, answer][turn] for turn, look, answer in turns[:room]]
    return sorted(taken, key=lambda c: (c.place, c.look))
