"""Distillation examples as the token ids that a judge's model reads and must write.

`leadline distill` writes them from a judge's verdicts, `Authored` from the labels of authored claims. The code that
prompts a model at night (`tasks/engines/_chat.py`) encodes them, so that nothing in a text of a
trace can be a control token here either. Left out: training on them (`distill.py`).
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.core import keys
from tasks.core.errors import DataError, UsageError
from tasks.core.types import Label, Request, Verdict
from tasks.distill.export import CARD, FORMAT, PROMPTS
from tasks.distill.selection import Candidate
from tasks.engines._chat import Chat
from tasks.engines.generator import Prompt
from tasks.judges.llm import Llm
from training.authored import Claim, Document, held_out

NAMES = {"judge": "judge.yaml", "grader": "grader.yaml"}
LABELS: Mapping[str, Label] = {"S": "supported", "P": "partially_supported", "U": "unsupported", "C": "contradicted"}
USER, REPLY = "Leadline-User-Text", "Leadline-Reply-Text"


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt, and the reply to write after it."""

    prompt: list[int]
    reply: list[int]

    @property
    def tokens(self) -> int:
        """Of both."""
        return len(self.prompt) + len(self.reply)


@dataclass(frozen=True, slots=True)
class Folder:
    """A training set.

    Attributes:
        card: Of `leadline distill`.
        prompts: The student's prompt files.
        chats: By split, the texts of system, user and assistant.
    """

    path: Path
    card: Mapping[str, Any]
    prompts: Sequence[Path]
    chats: Mapping[str, Sequence[tuple[str, str, str]]]

    @property
    def role(self) -> str:
        """`judge` or `grader`."""
        return str(self.card["student"]["role"])


@dataclass
class Authored:
    """Authored claims beside their whole documents as examples for a student; never of documents for measuring.

    The label is the author's, and the explanation quotes the sentences that decide it.

    Attributes:
        seen: By form of the student's prompts, how many claims there are.
        left_out: By form and reason, how many of them are no example.
    """

    documents: Sequence[Document]
    student: Llm
    seen: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leaves out the documents for measuring."""
        self._claims = [(d, claim) for d in self.documents if not held_out(d) for claim in d.claims]

    def candidates(self) -> Iterator[Candidate]:
        """Possible examples, in the order of documents and claims; afterwards the counts are complete."""
        self.seen, self.left_out = Counter(), {form: Counter() for form in self.student.forms}
        for place, (document, claim) in enumerate(self._claims):
            request, label = _request(document, claim), LABELS[claim.label]
            verdict = Verdict(request.key, label, passages=(1,), explanation=explanation(document, claim))
            for form in self.student.forms:
                self.seen[form] += 1
                example = self.student.example(form, 1, verdict)
                if example.problem is not None:
                    self.left_out[form][example.problem] += 1
                else:
                    yield Candidate(form, request.key, document.group, label, example.reply, place)

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Mapping[str, Any]]]:
        """The prompts of examples with their provenance."""
        for example in chosen:
            document, claim = self._claims[example.place]
            (prompt,) = self.student.prompts(example.form, [_request(document, claim)])
            yield example, prompt, {"document": document.group, "source": document.source, "kind": claim.kind}


def explanation(document: Document, claim: Claim) -> str:
    """The sentences that decide a claim, in the order of the document; where there are none, that there are none."""
    quoted = " ".join(document.sentences[i] for i in sorted(claim.needs))
    return f"The passage says: {quoted}" if quoted else "The passage does not say this."


def read(paths: Sequence[Path]) -> list[Folder]:
    """Training sets that one model can learn together.

    Raises:
        UsageError: A folder is none, is written by another version, or two want different judge files or prompts.
    """
    found: dict[str, Folder] = {}
    prompts: dict[str, Path] = {}
    folders = [_folder(path) for path in paths]
    for folder in folders:
        first = found.setdefault(folder.role, folder)
        if first.card["student"] != folder.card["student"]:
            raise UsageError(
                f"{first.path} and {folder.path} are for different {folder.role}s: prompts or settings differ. "
                "Make both with one --student."
            )
        for own in folder.prompts:
            other = prompts.setdefault(own.name, own)
            if other.read_bytes() != own.read_bytes():  # they come to lie in one folder
                raise UsageError(
                    f"{other} and {own} are different prompts of one name. Rename one student's prompt and write its "
                    "folder again by leadline distill."
                )
    return folders


def encoded(
    folders: Sequence[Folder], split: str, tokenizer: Any, model: str, max_tokens: int
) -> tuple[list[Example], int]:
    """The examples of a split as token ids, and how many were too long and are left out.

    Args:
        tokenizer: Of transformers, with a chat template.
        model: What it belongs to, for messages.
        max_tokens: Of an example.

    Raises:
        DataError: All of them are too long.
    """
    end = ending(tokenizer)
    examples: list[Example] = []
    for folder in folders:
        chat = Chat(tokenizer, model, folder.card["student"]["model"]["thinking"])
        chats = folder.chats[split]
        prompts = chat.encode([(system, user) for system, user, _ in chats])
        replies = chat.replies([reply for _, _, reply in chats])
        examples += [Example(prompt, [*reply, end]) for prompt, reply in zip(prompts, replies, strict=True)]
    kept = [example for example in examples if example.tokens <= max_tokens]
    if examples and not kept:
        shortest = min(example.tokens for example in examples)
        raise DataError(
            f"every example of {split} has more than max_tokens = {max_tokens} ({shortest} at least). Raise it."
        )
    return kept, len(examples) - len(kept)


def ending(tokenizer: Any) -> int:
    """Id of the token with which the model's chat template ends a reply."""
    chat = [{"role": "user", "content": USER}, {"role": "assistant", "content": REPLY}]
    after = tokenizer.apply_chat_template(chat, tokenize=False).rpartition(REPLY)[2]
    special = [i for i in tokenizer(after, add_special_tokens=False)["input_ids"] if i in tokenizer.all_special_ids]
    return int(special[0] if special else tokenizer.eos_token_id)


def _request(document: Document, claim: Claim) -> Request:
    text = document.text
    return Request(keys.request_key(text, claim.hypothesis), text, claim.hypothesis)


def _folder(path: Path) -> Folder:
    try:
        card = json.loads((path / CARD).read_text(encoding="utf-8"))
        chats = {split: _chats(path / f"{split}.jsonl") for split in ("train", "valid")}
        written, prompts = card["format"], sorted((path / PROMPTS).iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{error.filename} is not there. Give a folder that leadline distill wrote.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} can't be read ({type(error).__name__}). Write it again by leadline distill."
        ) from None
    if written != FORMAT:
        raise UsageError(f"{path / CARD} has format {written}, not {FORMAT}. Write it again by leadline distill.")
    return Folder(path, card, prompts, chats)


def _chats(path: Path) -> list[tuple[str, str, str]]:
    found = []
    with path.open("rb") as lines:
        for line in lines:
            system, user, assistant = (message["content"] for message in json.loads(line)["messages"])
            found.append((system, user, assistant))
    return found
