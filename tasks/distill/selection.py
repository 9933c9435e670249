"""Chooses a training set: no repeats, split by question, balanced, and limited in size.

Method: docs/methods.md#judging-the-judges.

Pure and deterministic: hashes decide, so that the same examples make the same set in any order, and more of them move
no question to the other split. Left out: where examples come from (`examples.py`).
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
    """An example, without its prompt.

    Attributes:
        form: Which of the student's prompts it is for.
        key: Hash of the input; equal keys of one form are the same example.
        question: Hash of the question that the answer belongs to.
        answer: What is balanced: a label, or a grade.
        reply: The student's reply.
        place: Row number among the teacher's verdicts.
    """

    form: str
    key: str
    question: str
    answer: str
    reply: str
    place: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A training set.

    Attributes:
        examples: Of each split, in the order of their places.
        left_out: By form and reason (`repeated`, `balance`, `max`), how many were not taken.
    """

    examples: Mapping[Split, Sequence[Candidate]]
    left_out: Mapping[str, Counter[str]]


def split_of(question: str, valid_share: float) -> Split:
    """The split of a question, whatever else there is."""
    drawn = int(keys.key("split", question, size=_BITS // 4), 16)
    return "valid" if drawn < valid_share * 2**_BITS else "train"


def choose(candidates: Iterable[Candidate], valid_share: float, balance: float | None, most: int | None) -> Chosen:
    """Chooses the training set.

    Args:
        candidates: Of equal ones the first counts.
        valid_share: Share of the questions that are held out.
        balance: Most examples of one answer for each of the rarest, in each split and form; None keeps all.
        most: Most examples in all, a `valid_share` of them held out; as even over forms and answers as possible.
    """
    left_out: dict[str, Counter[str]] = {}
    groups: dict[Split, dict[tuple[str, str], list[Candidate]]] = {split: {} for split in SPLITS}
    seen: set[tuple[str, str]] = set()
    for example in candidates:
        dropped = left_out.setdefault(example.form, Counter())
        if (example.form, example.key) in seen:
            dropped["repeated"] += 1
            continue
        seen.add((example.form, example.key))
        of = groups[split_of(example.question, valid_share)]
        of.setdefault((example.form, example.answer), []).append(example)
    kept = {split: _balanced(of, balance, left_out) for split, of in groups.items()}
    room = _room({split: sum(map(len, of.values())) for split, of in kept.items()}, valid_share, most)
    return Chosen({split: _first(kept[split], room[split], left_out) for split in SPLITS}, left_out)


Groups = Mapping[tuple[str, str], Sequence[Candidate]]


def _balanced(groups: Groups, balance: float | None, left_out: Mapping[str, Counter[str]]) -> Groups:
    """The groups of one split, each in random order and cut to what the rarest answer of its form allows."""
    rarest: dict[str, int] = {}
    for (form, _), its in groups.items():
        rarest[form] = min(rarest.get(form, len(its)), len(its))
    found = {}
    for (form, answer), its in sorted(groups.items()):
        drawn = sorted(its, key=lambda c: keys.key("draw", c.form, c.key))
        room = len(drawn) if balance is None else int(balance * rarest[form])
        left_out[form]["balance"] += len(drawn[room:])
        found[form, answer] = drawn[:room]
    return found


def _room(sizes: Mapping[Split, int], valid_share: float, most: int | None) -> Mapping[Split, int]:
    """How many examples each split may hold."""
    if most is None or sum(sizes.values()) <= most:
        return sizes
    valid = max(min(round(most * valid_share), sizes["valid"]), most - sizes["train"])
    return {"train": most - valid, "valid": valid}


def _first(groups: Groups, room: int, left_out: Mapping[str, Counter[str]]) -> Sequence[Candidate]:
    """`room` examples of one split, from all groups in turn."""
    turns = sorted((turn, *group) for group, its in groups.items() for turn in range(len(its)))
    for _, form, _ in turns[room:]:
        left_out[form]["max"] += 1
    taken = [groups[form, answer][turn] for turn, form, answer in turns[:room]]
    return sorted(taken, key=lambda c: (c.place, c.form))
