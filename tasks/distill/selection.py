"""Choose a training set: without repeats, split by question, balanced, and limited in size.

Method: docs/methods.md#judging-the-judges.

Pure and deterministic: the choice depends on hashes, so the same examples give the same set in any order, and further
examples move no question to the other split. Left out: the source of examples (`examples.py`).
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
        form: Form of the student's prompt.
        key: Hash of the input. Candidates with equal form and key are repeats.
        question: Hash of the trace's question.
        answer: The label or grade by which examples are balanced.
        reply: The reply that the student should learn.
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
        examples: Examples of each split, in the order of their places.
        left_out: Number of examples left out, by form and reason (`repeated`, `balance`, `max`).
    """

    examples: Mapping[Split, Sequence[Candidate]]
    left_out: Mapping[str, Counter[str]]


def split_of(question: str, valid_share: float) -> Split:
    """The split of a question, independent of other questions."""
    drawn = int(keys.key("split", question, size=_BITS // 4), 16)
    return "valid" if drawn < valid_share * 2**_BITS else "train"


def choose(candidates: Iterable[Candidate], valid_share: float, balance: float | None, most: int | None) -> Chosen:
    """Choose the training set.

    Args:
        candidates: Possible examples. Of repeats, only the first is used.
        valid_share: Share of questions to hold out.
        balance: Largest ratio between the examples of any answer and of the rarest answer, in each split and form; None
            keeps all.
        most: Largest number of examples, of which `valid_share` are held out. Forms and answers get shares that are as
            even as possible. None for no limit.
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
    """Shuffle the groups of one split, and cut each to `balance` times the rarest answer of its form."""
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
    """Largest number of examples of each split."""
    if most is None or sum(sizes.values()) <= most:
        return sizes
    valid = max(min(round(most * valid_share), sizes["valid"]), most - sizes["train"])
    return {"train": most - valid, "valid": valid}


def _first(groups: Groups, room: int, left_out: Mapping[str, Counter[str]]) -> Sequence[Candidate]:
    """Take `room` examples of one split, round-robin over its groups."""
    turns = sorted((turn, *group) for group, its in groups.items() for turn in range(len(its)))
    for _, form, _ in turns[room:]:
        left_out[form]["max"] += 1
    taken = [groups[form, answer][turn] for turn, form, answer in turns[:room]]
    return sorted(taken, key=lambda c: (c.place, c.form))
