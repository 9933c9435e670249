"""The language-model judge: shows numbered passages and a claim to an open-weights model, which answers with a label.

The reply is a JSON object with a fixed schema: the label, the numbers of the passages that decide it and, if the prompt
asks for it, an explanation. The confidence comes from the probabilities of the label's tokens. The prompt is a file
(`_prompts.py`), `_fence.py` escapes the texts of the trace, and an engine runs the model. Left out: which passages are
shown together, and the order of requests, which determines how much a prefix cache saves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self, cast

import msgspec
from pydantic import Field, model_validator

from tasks.core.config import Share, resolved_in
from tasks.core.types import OUTAGE, Label, Request, Verdict
from tasks.engines.generator import Example, Generated, Generator, GeneratorConfig, Prompt, Reply, open_generator
from tasks.judges import _fence, _labels, _model, _prompts
from tasks.judges._base import JudgeConfig
from tasks.judges._model import ModelUser

RULES = 1  # raised when the same replies give a different verdict
P_DECIMALS = 4
INPUTS = ("passages", "claim")
PLAIN = ("label", "passages")
# The explanation comes before the label (docs/methods.md#citation-groundedness-two-passes).
EXPLAINED = ("explanation", *PLAIN)
CHOICES: tuple[Label, ...] = ("supported", "partially_supported", "unsupported", "contradicted")


class Config(JudgeConfig):
    """The settings in a language-model judge's file. Paths of prompts are relative to the file.

    Attributes:
        model: The model and its engine.
        prompt: Prompt file that asks for label and passages; for `explain: never` and `on_failure`.
        explained_prompt: Prompt file that asks for an explanation first; for `explain: always` and `on_failure`.
        explain: Which claims get an explanation: none (`never`), all (`always`), or those not found supported
            (`on_failure`), which are judged a second time. The prompt's `maxLength` limits its length.
        samples: Replies to each prompt, averaged; more than one needs a temperature.
        abstain_below: Labels with a lower probability become `abstained`. None never abstains; nor does a model without
            log-probabilities.
        max_reply_tokens: Maximum tokens of a reply without an explanation.
        max_explained_tokens: Maximum tokens of a reply with an explanation.
    """

    kind: Literal["llm"] = "llm"
    model: GeneratorConfig
    prompt: Path | None = None
    explained_prompt: Path | None = None
    explain: Literal["never", "on_failure", "always"] = "never"
    samples: Annotated[int, Field(ge=1)] = 1
    abstain_below: Share | None = None
    max_reply_tokens: Annotated[int, Field(ge=16)] = 128
    max_explained_tokens: Annotated[int, Field(ge=16)] = 512

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        self.model.check_samples(self.samples)
        for name, path in (("prompt", self.prompt), ("explained_prompt", self.explained_prompt)):
            if path is None and self.explain in NEEDED_BY[name]:
                raise ValueError(f"has explain: {self.explain} and no {name}; add {name}")
        return self


NEEDED_BY = {"prompt": ("never", "on_failure"), "explained_prompt": ("on_failure", "always")}


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    """A reply without an explanation."""

    label: str
    passages: list[int]


class _ExplainedAnswer(_Answer):
    """A reply with an explanation."""

    explanation: str


@dataclass(frozen=True, slots=True)
class _Form:
    """A prompt and the type of its replies."""

    prompt: _prompts.PromptFile
    answer: type[_Answer]
    max_tokens: int


class Llm(ModelUser):
    """See the module. Equal requests get equal verdicts if the engine gives equal replies."""

    def __init__(self, config: Config, generator: Generator, where: str = "judge") -> None:
        """Create a judge with an opened generator.

        Args:
            where: The config file, for messages; paths of prompts are relative to it.

        Raises:
            ConfigError: A prompt file is missing or wrong.
        """
        super().__init__(config.model, generator)
        self._config, self._where, self.languages = config, where, config.languages
        self._forms: dict[str, _Form] = {}  # a prompt that `explain` does not need is not read
        if config.prompt is not None and config.explain in NEEDED_BY["prompt"]:
            self._forms["plain"] = self._form("prompt", config.prompt, PLAIN, _Answer, config.max_reply_tokens)
        if config.explained_prompt is not None and config.explain in NEEDED_BY["explained_prompt"]:
            self._forms["explained"] = self._form(
                "explained_prompt", config.explained_prompt, EXPLAINED, _ExplainedAnswer, config.max_explained_tokens
            )

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict. Addresses of servers and the number of GPUs can't."""
        return {
            "kind": "llm",
            "rules": [RULES, _fence.RULES, _labels.RULES],
            "model": self._generator.describe(),
            "prompts": {
                name: {"prompt": form.prompt.hash, "output": form.prompt.output, "max_tokens": form.max_tokens}
                for name, form in self._forms.items()
            },
            **self._config.model_dump(mode="json", include={"explain", "samples", "abstain_below"}),
        }

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in order (docs/methods.md#labels).

        With `explain: on_failure`, claims not found supported are judged again with an explanation, and the second
        verdict replaces the first: an explanation written before a decision explains only that decision. If the second
        try fails, the first verdict stays, without an explanation. In an outage there is no verdict.

        Raises:
            EngineError: The model can't be loaded or reached; no verdicts are returned.
        """
        first, *explained = self._forms.values()
        verdicts = self._verdicts(first, requests)
        for form in explained:
            again = [i for i, v in enumerate(verdicts) if v.label not in {None, "supported"}]
            for i, second in zip(again, self._verdicts(form, [requests[i] for i in again]), strict=True):
                verdicts[i] = _second(verdicts[i], second)
        return verdicts

    @property
    def config(self) -> Config:
        """The file's settings, in which prompts are relative to the file."""
        return self._config

    @property
    def forms(self) -> tuple[str, ...]:
        """Names of the prompts: `plain`, `explained`, or both with `explain: on_failure`."""
        return tuple(self._forms)

    @property
    def prompt_hashes(self) -> dict[str, str]:
        """Hash of each prompt file, by the prompt's name."""
        return {name: form.prompt.hash for name, form in self._forms.items()}

    def prompts(self, form: str, requests: Sequence[Request]) -> list[Prompt]:
        """The prompt about each request, in order."""
        return self._prompts(self._forms[form], requests)

    def example(self, form: str, shown: int, verdict: Verdict) -> Example:
        """The reply to a prompt that expresses another judge's verdict.

        Args:
            shown: Number of passages in the request.
            verdict: A verdict with a label.
        """
        explains = self._forms[form].answer is _ExplainedAnswer
        if explains and verdict.label == "supported" and self._config.explain == "on_failure":
            return Example(problem="not_asked")
        if explains and not verdict.explanation:
            return Example(problem="no_explanation")
        if verdict.label not in CHOICES:
            return Example(problem="abstained")
        passages = _named(_Answer(verdict.label, list(verdict.passages)), shown)
        if isinstance(passages, str):
            return Example(problem=passages)
        explanation = {"explanation": _fence.escape(str(verdict.explanation))} if explains else {}
        reply = {**explanation, "label": verdict.label, "passages": passages}
        return _model.example(reply, self._forms[form].prompt.schema({"passages": shown}))

    def _form(self, key: str, path: Path, fields: Sequence[str], answer: type[_Answer], max_tokens: int) -> _Form:
        at = resolved_in(path, "prompts", self._where, key)
        prompt = _prompts.load(at, INPUTS, fields, ("passages",), where=self._where, key=key)
        return _Form(prompt, answer, max_tokens)

    def _prompts(self, form: _Form, requests: Sequence[Request]) -> list[Prompt]:
        passages = lru_cache(maxsize=1)(_passages)  # requests with the same passages are adjacent
        return [
            form.prompt.fill(
                form.max_tokens,
                {"passages": len(r.shown)},
                True,  # alternatives
                passages=passages(r.shown),
                claim=_fence.block("claim", r.hypothesis),
            )
            for r in requests
        ]

    def _verdicts(self, form: _Form, requests: Sequence[Request]) -> list[Verdict]:
        prompts = self._prompts(form, requests)
        generated = self._generator.generate(prompts, self._config.samples) if prompts else []
        return [self._verdict(form, r, g) for r, g in zip(requests, generated, strict=True)]

    def _verdict(self, form: _Form, request: Request, generated: Generated) -> Verdict:
        paid = Verdict(
            request.key,
            tokens_in=generated.tokens_in,
            tokens_cached=generated.tokens_cached,
            tokens_out=generated.tokens_out,
        )
        if generated.failure is not None:
            return replace(paid, failure=generated.failure)
        read = [(reply, _read(reply, len(request.shown), form.answer)) for reply in generated.replies]
        readable = [(reply, answer) for reply, answer in read if isinstance(answer, _Answer)]
        if not readable:
            reply, failure = read[0]
            return replace(paid, failure=str(failure), raw=reply.text)
        p = _average(readable)
        label = max((answer.label for _, answer in readable), key=lambda label: p.get(label, 0.0))
        answer = next(answer for _, answer in readable if answer.label == label)
        sure = p.get(label)
        low = self._config.abstain_below
        return replace(
            paid,
            label="abstained" if sure is not None and low is not None and sure < low else cast("Label", label),
            p_supported=p.get("supported"),
            p_contradicted=p.get("contradicted"),
            passages=tuple(answer.passages),
            explanation=_fence.unescape(answer.explanation) if isinstance(answer, _ExplainedAnswer) else None,
        )


def _passages(shown: tuple[str, ...]) -> str:
    return _fence.blocks("passage", shown)


def _read(reply: Reply, shown: int, kind: type[_Answer]) -> _Answer | str:
    """A reply as an answer about `shown` passages, or the name of its failure."""
    answer = _model.read(reply, kind)
    if isinstance(answer, str):
        return answer
    if answer.label not in CHOICES:
        return "unknown_label"
    named = _named(answer, shown)
    return named if isinstance(named, str) else msgspec.structs.replace(answer, passages=named)


def _named(answer: _Answer, shown: int) -> list[int] | str:
    """The passages that decide the label, without duplicates, or the name of the failure."""
    if any(not 1 <= number <= shown for number in answer.passages):
        return "unknown_passage"
    if answer.label == "unsupported":
        return []  # no passage decides this label, whatever the reply names
    if shown == 1:
        return [1]  # there is only one, even if the reply does not name it
    return list(dict.fromkeys(answer.passages)) or "no_passage"


def _average(answers: Sequence[tuple[Reply, _Answer]]) -> dict[str, float]:
    """Mean probability of each label over the replies (docs/methods.md#noise-and-confidence).

    Without log-probabilities, the share of replies with the label. For a single reply without them, the result is
    empty.
    """
    found = [_labels.distribution(reply, "label", CHOICES) for reply, _ in answers]
    given = [p for p in found if p is not None]
    if not given and len(answers) > 1:
        given = [{label: float(answer.label == label) for label in CHOICES} for _, answer in answers]
    if not given:
        return {}
    return {label: round(sum(p[label] for p in given) / len(given), P_DECIMALS) for label in CHOICES}


def _second(first: Verdict, second: Verdict) -> Verdict:
    """The final verdict after two tries at one request, with the cost of both."""
    stands = first if second.failure not in {None, OUTAGE} else second
    return replace(
        stands,
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_cached=first.tokens_cached + second.tokens_cached,
        tokens_out=first.tokens_out + second.tokens_out,
    )


def build(config: Config, where: str) -> Llm:
    """The judge. A relative model folder and the prompts are relative to the config file `where`."""
    model = config.model.relative_to(Path(where).parent)
    return Llm(config.model_copy(update={"model": model}), open_generator(model), where)
