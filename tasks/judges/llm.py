"""The language-model judge: an open-weights model is shown numbered passages and a claim and answers with a label.

The reply is a JSON object of a fixed schema: the label, the numbers of the passages that decide it and, where the
prompt wants it, an explanation. The confidence is what the model gave to each label's first token. The prompt is a file
(`_prompts.py`), texts of the trace are fenced in it (`_fence.py`), engines run it. Left out: which passages are shown
together, and the order of requests, which decides what a prefix cache saves.
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

RULES = 1  # raised when the way from replies to a verdict changes
P_DECIMALS = 4
INPUTS = ("passages", "claim")
PLAIN = ("label", "passages")
# The model decides after it has explained (docs/methods.md#citation-groundedness-two-passes).
EXPLAINED = ("explanation", *PLAIN)
CHOICES: tuple[Label, ...] = ("supported", "partially_supported", "unsupported", "contradicted")


class Config(JudgeConfig):
    """The whole of a language-model judge's file. Paths of prompts are relative to the file.

    Attributes:
        model: The model, and the engine that runs it.
        prompt: Prompt file that asks for label and passages; for `explain: never` and `on_failure`.
        explained_prompt: One that asks for an explanation before them; for `explain: always` and `on_failure`.
        explain: Who gets an explanation: nobody, every claim, or those that the judge did not find supported
            without one, which are judged again. How long it may be is the prompt's `maxLength`.
        samples: Replies to each prompt, averaged; more than one needs a temperature.
        abstain_below: A label less probable than this is answered with `abstained`; None answers always, and so
            does a model that gives no probabilities.
        max_reply_tokens: Most tokens of a reply without an explanation.
        max_explained_tokens: Most tokens of one with it.
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
    """A reply with one."""

    explanation: str


@dataclass(frozen=True, slots=True)
class _Form:
    """A prompt, and what its replies are like."""

    prompt: _prompts.PromptFile
    answer: type[_Answer]
    max_tokens: int


class Llm(ModelUser):
    """See the module. Equal requests get equal verdicts as far as the engine gives equal replies."""

    def __init__(self, config: Config, generator: Generator, where: str = "judge") -> None:
        """A judge whose generator is given.

        Args:
            where: The config file, for messages; paths of prompts are relative to it.

        Raises:
            ConfigError: A prompt file is missing or wrong.
        """
        super().__init__(config.model, generator)
        self._config, self._where, self.languages = config, where, config.languages
        self._forms: dict[str, _Form] = {}  # a prompt that `explain` does not need is not even read
        if config.prompt is not None and config.explain in NEEDED_BY["prompt"]:
            self._forms["plain"] = self._form("prompt", config.prompt, PLAIN, _Answer, config.max_reply_tokens)
        if config.explained_prompt is not None and config.explain in NEEDED_BY["explained_prompt"]:
            self._forms["explained"] = self._form(
                "explained_prompt", config.explained_prompt, EXPLAINED, _ExplainedAnswer, config.max_explained_tokens
            )

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict; not where servers are nor how many GPUs run the model."""
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

        With `explain: on_failure` a second verdict, with an explanation, replaces the first: an explanation written
        before a decision is a reason for that decision, not for one taken without it. Where the second try fails for
        good, the first verdict stays, unexplained; in an outage there is no verdict.

        Raises:
            EngineError: The model can't be loaded or reached: nothing is kept.
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
        """Its file's settings; prompts are relative to the file."""
        return self._config

    @property
    def forms(self) -> tuple[str, ...]:
        """Names of its prompts: `plain`, `explained`, or both where failures are judged again."""
        return tuple(self._forms)

    @property
    def prompt_hashes(self) -> dict[str, str]:
        """Hash of the prompt file of each of them."""
        return {name: form.prompt.hash for name, form in self._forms.items()}

    def prompts(self, form: str, requests: Sequence[Request]) -> list[Prompt]:
        """The prompt about each request, in order."""
        return self._prompts(self._forms[form], requests)

    def example(self, form: str, shown: int, verdict: Verdict) -> Example:
        """The reply to a prompt that reads as the verdict of another judge.

        Args:
            shown: How many passages the request has.
            verdict: With a label.
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
        passages = lru_cache(maxsize=1)(_passages)  # requests that share them follow one another
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
    """A reply as an answer about `shown` passages, or the failure that it is."""
    answer = _model.read(reply, kind)
    if isinstance(answer, str):
        return answer
    if answer.label not in CHOICES:
        return "unknown_label"
    named = _named(answer, shown)
    return named if isinstance(named, str) else msgspec.structs.replace(answer, passages=named)


def _named(answer: _Answer, shown: int) -> list[int] | str:
    """The passages that decide the label, none twice, or the failure that they are."""
    if any(not 1 <= number <= shown for number in answer.passages):
        return "unknown_passage"
    if answer.label == "unsupported":
        return []  # nothing in them decides it, whatever the reply names
    if shown == 1:
        return [1]  # there is no other, whether the reply names it or not
    return list(dict.fromkeys(answer.passages)) or "no_passage"


def _average(answers: Sequence[tuple[Reply, _Answer]]) -> dict[str, float]:
    """Mean probability of each label over the replies (docs/methods.md#noise-and-confidence).

    Without log-probabilities, the share of the replies that gave it; a single reply has no such share, and the result
    is empty.
    """
    found = [_labels.distribution(reply, "label", CHOICES) for reply, _ in answers]
    given = [p for p in found if p is not None]
    if not given and len(answers) > 1:
        given = [{label: float(answer.label == label) for label in CHOICES} for _, answer in answers]
    if not given:
        return {}
    return {label: round(sum(p[label] for p in given) / len(given), P_DECIMALS) for label in CHOICES}


def _second(first: Verdict, second: Verdict) -> Verdict:
    """The verdict of two tries at one request, with the cost of both."""
    stands = first if second.failure not in {None, OUTAGE} else second
    return replace(
        stands,
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_cached=first.tokens_cached + second.tokens_cached,
        tokens_out=first.tokens_out + second.tokens_out,
    )


def build(config: Config, where: str) -> Llm:
    """The judge; a relative model folder and the prompts are relative to the config file `where`."""
    model = config.model.relative_to(Path(where).parent)
    return Llm(config.model_copy(update={"model": model}), open_generator(model), where)
