"""Write distillation examples as training data for a smaller language model (docs/methods.md#judging-the-judges).

The folder contains `train.jsonl` and `valid.jsonl` (one chat per line), the student's prompts, and `card.json` with
counts of all verdicts that were used or left out. The same lake and options give the same bytes. The files contain
texts of traces, so the user must protect them like the lake. Nothing is written to the lake. Left out: training
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

from tasks.core.config.names import is_path, resolved
from tasks.core.errors import DataError, LeadlineError, UsageError
from tasks.distill.selection import SPLITS, Candidate, Chosen, Split, choose
from tasks.engines.generator import Prompt

FORMAT = 1  # increase this when the format of the files or the card changes
CARD, PROMPTS, README = "card.json", "prompts", "README.md"
WRITTEN = frozenset({CARD, PROMPTS, README, *(f"{split}.jsonl" for split in SPLITS)})  # all files of a training set
KEPT = ("thinking", "temperature", "top_p", "seed")  # settings of the student's model that don't depend on the weights


class Source(Protocol):
    """A source of examples. For the members, see `tasks.distill.examples.Examples`."""

    seen: Counter[str]
    left_out: dict[str, Counter[str]]

    def candidates(self) -> Iterator[Candidate]:
        """Yield all possible examples."""

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Mapping[str, Any]]]:
        """Yield chosen examples with prompt and provenance."""


@dataclass(frozen=True, slots=True)
class Student:
    """The model to train.

    Attributes:
        role: `judge` of claims, or `grader` of answers.
        settings: Settings in the student's file; paths of prompts are relative to the file.
        prompts: Hashes of the student's prompts, by form.
        folder: Folder of the student's file.
    """

    role: str
    settings: Mapping[str, Any]
    prompts: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, slots=True)
class Shares:
    """Options for choosing a training set; see `selection.choose`."""

    valid: float = 0.1
    balance: float | None = 2.0
    most: int | None = None

    def __post_init__(self) -> None:
        """Validate the options.

        Raises:
            UsageError: A number is out of range.
        """
        if not 0 <= self.valid < 1:
            raise UsageError(f"--valid-share {self.valid:g} is not a valid share. Give 0 or more, and less than 1.")
        if self.balance is not None and self.balance < 1:
            raise UsageError(
                f"--balance {self.balance:g} is below 1. Give 1 for equal numbers, more, or 0 to leave all."
            )
        if self.most is not None and self.most < 1:
            raise UsageError(f"--max {self.most} is not a valid number of examples. Give 1 or more.")


def export(
    examples: Source, student: Student, shares: Shares, about: Mapping[str, object], teacher: str, out: Path
) -> Mapping[str, Any]:
    """Write the training set into a folder, replacing an earlier training set.

    Args:
        about: The card's entries on teacher and options.
        teacher: Version of the teacher, for the provenance of examples.

    Returns:
        The card.

    Raises:
        UsageError: The folder contains anything else.
        DataError: No training example is left.
        LeadlineError: The folder can't be written.
    """
    check(out)
    chosen = choose(examples.candidates(), shares.valid, shares.balance, shares.most)
    counts = _counts(examples, chosen)
    if not chosen.examples["train"]:
        raise DataError(f"no examples are left: {_reasons(counts)}. Ask for more days, or leave out less.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as made:  # readable only by this user
            folder = Path(made) / out.name
            folder.mkdir(mode=0o700)
            card = _write(examples, student, chosen, counts, about, teacher, folder)
            if out.exists():
                out.rename(Path(made) / "before")
            folder.rename(out)
    except OSError as error:
        raise LeadlineError(f"{out}: can't be written ({error.strerror}). Free space or grant access.") from error
    return card


def check(out: Path) -> None:
    """Check that the folder is missing, empty, or an earlier training set, since it will be replaced.

    Raises:
        UsageError: The folder contains anything else.
    """
    if not out.exists():
        return
    held = {path.name for path in out.iterdir()} if out.is_dir() else {out.name}
    if held and (CARD not in held or held - WRITTEN):
        raise UsageError(f"{out} is not a training set. Give a new folder.")


def settings_of(dumped: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Path, str]]:
    """Return a student's settings without its model, and the files that they name with their new paths in `prompts`.

    Args:
        dumped: All settings, with paths as `Path` objects.
    """
    files: dict[Path, str] = {}

    def placed(value: Any) -> Any:  # noqa: ANN401 - any setting
        if isinstance(value, Path):
            file = value.name if is_path(value) else f"{value.name}.md"
            files[value] = f"{PROMPTS}/{value.parent.name}-{file}" if value.parent.name else f"{PROMPTS}/{file}"
            return files[value]
        if isinstance(value, Mapping):
            return {name: placed(part) for name, part in value.items()}
        return value

    kept = {name: placed(value) for name, value in dumped.items() if name != "model"}
    if len(set(files.values())) < len(files):
        raise UsageError("two prompts of the student have one name. Rename the file or the folder of one of them.")
    return kept, files


def _write(
    examples: Source,
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
        shutil.copyfile(resolved(path, "prompts", student.folder), folder / name)
    written = {
        f"{split}.jsonl": _lines(examples, student, chosen.examples[split], teacher, folder, split) for split in SPLITS
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
        "examples": counts,
        "questions": {split: len({c.question for c in chosen.examples[split]}) for split in SPLITS},
        "files": written,
    }
    (folder / README).write_text(_readme(card), encoding="utf-8")
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return card


def _lines(
    examples: Source, student: Student, chosen: Sequence[Candidate], teacher: str, folder: Path, split: Split
) -> str:
    """Write one split; returns the file's hash."""
    digest = hashlib.sha256()
    with (folder / f"{split}.jsonl").open("wb") as file:
        for example, prompt, where in examples.written(chosen):
            chat = {"system": prompt.system, "user": prompt.user, "assistant": example.reply}
            row = {
                "messages": [{"role": role, "content": text} for role, text in chat.items()],
                "provenance": {
                    "judge_version": teacher,
                    "form": example.form,
                    "prompt": student.prompts[example.form],
                    **where,
                },
            }
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            file.write(line)
        os.fsync(file.fileno())
    return digest.hexdigest()


def _counts(examples: Source, chosen: Chosen) -> dict[str, Any]:
    """Counts by form: verdicts, examples kept by split and answer, and examples left out by reason."""
    found = {}
    for form in sorted(examples.seen):
        kept = {s: Counter(c.answer for c in chosen.examples[s] if c.form == form) for s in SPLITS}
        gone = examples.left_out.get(form, Counter()) + chosen.left_out.get(form, Counter())
        found[form] = {
            "judged": examples.seen[form],
            "kept": {split: dict(sorted(kept[split].items())) for split in SPLITS},
            "left_out": dict(sorted(gone.items())),
        }
    return found


def _reasons(counts: Mapping[str, Any]) -> str:
    shown = []
    for form, its in counts.items():
        gone = ", ".join(f"{reason} {n:,}" for reason, n in its["left_out"].items())
        shown.append(f"{form}: {its['judged']:,} judged{f' ({gone})' if gone else ''}")
    return "; ".join(shown) or "the teacher judged nothing in the wanted days and applications"


def _readme(card: Mapping[str, Any]) -> str:
    """Format the card as a README."""
    lines = [
        "# Training data made from a judge's verdicts",
        "",
        "**Private: the chats hold texts of traces.** Keep them as safe as the logs. Where texts are redacted in the",
        "lake, delete this folder and run the same command again:",
        "",
        f"    {card['command']}",
        "",
        f"Teacher: {card['teacher']['name']}, version {card['teacher']['version']}. `card.json` has the rest.",
        "",
        "| form | judged | train | valid | left out |",
        "|---|---|---|---|---|",
    ]
    for form, its in card["examples"].items():
        kept = [", ".join(f"{a} {n:,}" for a, n in its["kept"][split].items()) or "0" for split in SPLITS]
        gone = ", ".join(f"{reason} {n:,}" for reason, n in its["left_out"].items()) or "0"
        lines.append(f"| {form} | {its['judged']:,} | {' | '.join(kept)} | {gone} |")
    return "\n".join(lines) + "\n"
