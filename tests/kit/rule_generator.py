"""A generator that answers by a rule and keeps what it was asked: for the tests of what asks a language model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.analysis.ask import Ask, Form, opened
from tasks.core.config import validate
from tasks.core.errors import EngineError
from tasks.engines.generator import Generated, Prompt, Reply
from tasks.judges import llm

MODEL = {"model": "org/scripted", "revision": "0" * 40}  # of a config whose model is never opened


@dataclass
class Scripted:
    """`rule` gives the text of a reply, a reply, those of all samples, or all that comes of a prompt.

    It is down after `up_for` calls. A prompt costs 10 tokens, of which 4 were cached, and a reply 3.
    """

    rule: Callable[[Prompt], str | Reply | list[str] | Generated]
    up_for: int | None = None
    calls: list[list[Prompt]] = field(default_factory=list)
    closed: int = 0

    @property
    def asked(self) -> list[Prompt]:
        return [prompt for call in self.calls for prompt in call]

    def describe(self) -> dict[str, object]:
        return {"model": "scripted"}

    def generate(self, prompts: Sequence[Prompt], samples: int = 1) -> list[Generated]:
        if self.up_for is not None and len(self.calls) >= self.up_for:
            raise EngineError("the model is down. Start it.")
        self.calls.append(list(prompts))
        return [self._generated(prompt, samples) for prompt in prompts]

    def close(self) -> None:
        self.closed += 1

    def _generated(self, prompt: Prompt, samples: int) -> Generated:
        found = self.rule(prompt)
        if isinstance(found, Generated):
            return replace(found, tokens_in=10)
        texts = found if isinstance(found, list) else [found] * samples
        assert len(texts) == samples
        replies = tuple(t if isinstance(t, Reply) else Reply(t, "stop") for t in texts)
        return Generated(replies, tokens_in=10, tokens_cached=4, tokens_out=3 * samples)


def asking(generator: Scripted, task: str = "Is it about tea?", form: Form = "yes-no") -> Ask:
    """A question of `leadline ask` for this generator."""
    config = validate(llm.Config, {"kind": "llm", "model": MODEL, "prompt": "entailment/v1"}, "scripted.yaml")
    return opened(task, form, llm.Llm(config, generator, "scripted.yaml"), Path("scripted.yaml"))
