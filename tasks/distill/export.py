"""Distillation: what a strong judge has judged becomes training data for a smaller language model (METHODS section 10).

A folder with `train.jsonl` and `valid.jsonl` (chats, one a line), the student's prompts, and `card.json`, which counts
everything that went in, by what became of it. The same lake and options give the same bytes. The files hold texts of
traces: they are the user's to keep as safe as the lake. Nothing is written to the lake. Left out: training
(`training/distill.py`).
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tasks.core.errors import DataError, LeadlineError, UsageError
from tasks.distill.selection import SPLITS, Candidate, Chosen, Split, choose
from tasks.engines.generator import Prompt

FORMAT = 1  # raised when the files or the card are written otherwise
CARD, PROMPTS, README = "card.json", "prompts", "README.md"
WRITTEN = frozenset({CARD, PROMPTS, README, *(f"{split}.jsonl" for split in SPLITS)})  # all that a folder holds
KEPT = ("thinking", "temperature", "top_p", "seed")  # of the student's model: how it is asked, whatever model it is


class Lessons(Protocol):
    """What a teacher judged, as lessons for a student.

    Attributes:
        seen: By the student's look, how many judgements of the teacher there are.
        left_out: By look and reason, how many of them are no lesson.
    """

    seen: Counter[str]
    left_out: dict[str, Counter[str]]

    def candidates(self) -> Iterator[Candidate]:
        """What can be a lesson; afterwards the counts are complete."""

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Mapping[str, object]]]:
        """The prompts of lessons, with where each comes from, in the order of their places."""


@dataclass(frozen=True, slots=True)
class Student:
    """Who is to be taught.

    Attributes:
        role: `judge` of claims, or `grader` of answers.
        settings: Its file, paths of prompts relative to it.
        prompts: The hash of each of its prompts, by look.
        folder: Of its file.
    """

    role: str
    settings: Mapping[str, Any]
    prompts: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, slots=True)
class Shares:
    """How lessons become a training set; see `lessons.choose`."""

    valid: float = 0.1
    balance: float | None = 2.0
    most: int | None = None

    def __post_init__(self) -> None:
        """Refuses what makes no set.

        Raises:
            UsageError: A number is out of its range.
        """
        if not 0 <= self.valid < 1:
            raise UsageError(f"--valid-share {self.valid:g} is no share to hold out. Give 0 or more, and less than 1.")
        if self.balance is not None and self.balance < 1:
            raise UsageError(
                f"--balance {self.balance:g} is below 1. Give 1 for equal numbers, more, or 0 to leave all."
            )
        if self.most is not None and self.most < 1:
            raise UsageError(f"--max {self.most} is no number of lessons. Give 1 or more.")


def export(
    lessons: Lessons, student: Student, shares: Shares, about: Mapping[str, object], teacher: str, out: Path
) -> Mapping[str, Any]:
    """Write the training set that lessons make into a folder, in the place of an earlier one.

    Args:
        about: What the card says of teacher and options.
        teacher: Its version, for each lesson's provenance.

    Returns:
        The card.

    Raises:
        UsageError: The folder holds something else.
        DataError: Nothing is left to learn from.
        LeadlineError: The folder can't be written.
    """
    check(out)
    chosen = choose(lessons.candidates(), shares.valid, shares.balance, shares.most)
    counts = _counts(lessons, chosen)
    if not chosen.lessons["train"]:
        raise DataError(f"nothing is left to learn from: {_reasons(counts)}. Ask for more days, or leave out less.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as made:  # nobody else may read it
            folder = Path(made) / out.name
            folder.mkdir(mode=0o700)
            card = _write(lessons, student, chosen, counts, about, teacher, folder)
            if out.exists():
                out.rename(Path(made) / "before")
            folder.rename(out)
    except OSError as error:
        raise LeadlineError(f"{out}: can't be written ({error.strerror}). Free space or grant access.") from error
    return card


def check(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier training set: it would be gone.

    Raises:
        UsageError: It does.
    """
    if not out.exists():
        return
    held = {path.name for path in out.iterdir()} if out.is_dir() else {out.name}
    if held and (CARD not in held or held - WRITTEN):
        raise UsageError(f"{out} holds something else than a training set. Give a new folder.")


def settings_of(dumped: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Path, str]]:
    """The settings of a student without its model, and the files that they name, which come to lie in `prompts`.

    Args:
        dumped: All settings, paths as paths.
    """
    files: dict[Path, str] = {}

    def placed(value: Any) -> Any:  # noqa: ANN401 - any setting
        if isinstance(value, Path):
            files[value] = (
                f"{PROMPTS}/{value.parent.name}-{value.name}" if value.parent.name else f"{PROMPTS}/{value.name}"
            )
            return files[value]
        if isinstance(value, Mapping):
            return {name: placed(part) for name, part in value.items()}
        return value

    kept = {name: placed(value) for name, value in dumped.items() if name != "model"}
    if len(set(files.values())) < len(files):
        raise UsageError("two prompts of the student have one name. Rename the file or the folder of one of them.")
    return kept, files


def _write(
    lessons: Lessons,
    student: Student,
    chosen: Chosen,
    counts: Mapping[str, Any],
    about: Mapping[str, object],
    teacher: str,
    folder: Path,
) -> Mapping[str, Any]:
    settings, files = settings_of(student.settings)
    (folder / PROMPTS).mkdir()
    for path, name in files.items():
        shutil.copyfile(student.folder / path.expanduser(), folder / name)
    written = {
        f"{split}.jsonl": _lines(lessons, student, chosen.lessons[split], teacher, folder, split) for split in SPLITS
    }
    card = {
        "format": FORMAT,
        **about,
        "student": {
            "role": student.role,
            "settings": settings,
            "model": {name: student.settings["model"][name] for name in KEPT},
            "prompts": dict(student.prompts),
        },
        "lessons": counts,
        "questions": {split: len({c.question for c in chosen.lessons[split]}) for split in SPLITS},
        "files": written,
    }
    (folder / README).write_text(_readme(card), encoding="utf-8")
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return card


def _lines(
    lessons: Lessons, student: Student, chosen: Sequence[Candidate], teacher: str, folder: Path, split: Split
) -> str:
    """Write one split; returns the file's hash."""
    digest = hashlib.sha256()
    with (folder / f"{split}.jsonl").open("wb") as file:
        for lesson, prompt, where in lessons.written(chosen):
            said = {"system": prompt.system, "user": prompt.user, "assistant": lesson.reply}
            row = {
                "messages": [{"role": role, "content": text} for role, text in said.items()],
                "provenance": {
                    "judge_version": teacher,
                    "pair_kind": lesson.look,
                    "prompt": student.prompts[lesson.look],
                    **where,
                },
            }
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            file.write(line)
        os.fsync(file.fileno())
    return digest.hexdigest()


def _counts(lessons: Lessons, chosen: Chosen) -> dict[str, Any]:
    """By look: what the teacher judged, what is kept in each split and of each answer, and what is not, by reason."""
    found = {}
    for look in sorted(lessons.seen):
        kept = {s: Counter(c.answer for c in chosen.lessons[s] if c.look == look) for s in SPLITS}
        gone = lessons.left_out.get(look, Counter()) + chosen.left_out.get(look, Counter())
        found[look] = {
            "judged": lessons.seen[look],
            "kept": {split: dict(sorted(kept[split].items())) for split in SPLITS},
            "left_out": dict(sorted(gone.items())),
        }
    return found


def _reasons(counts: Mapping[str, Any]) -> str:
    told = []
    for look, its in counts.items():
        gone = ", ".join(f"{reason} {n:,}" for reason, n in its["left_out"].items())
        told.append(f"{look}: {its['judged']:,} judged{f' ({gone})' if gone else ''}")
    return "; ".join(told) or "the teacher judged nothing of what is asked for"


def _readme(card: Mapping[str, Any]) -> str:
    """The card for people."""
    lines = [
        "# Training data made from a judge's verdicts",
        "",
        "**Private: the chats hold texts of traces.** Keep them as safe as the logs. Where texts are removed from the",
        "lake, delete this folder and make it again by the same command:",
        "",
        f"    {card['command']}",
        "",
        f"Teacher: {card['teacher']['name']}, version {card['teacher']['version']}. `card.json` has the rest.",
        "",
        "| look | judged | train | valid | left out |",
        "|---|---|---|---|---|",
    ]
    for look, its in card["lessons"].items():
        kept = [", ".join(f"{a} {n:,}" for a, n in its["kept"][split].items()) or "0" for split in SPLITS]
        gone = ", ".join(f"{reason} {n:,}" for reason, n in its["left_out"].items()) or "0"
        lines.append(f"| {look} | {its['judged']:,} | {' | '.join(kept)} | {gone} |")
    return "\n".join(lines) + "\n"
