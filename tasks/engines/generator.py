"""Generators: language models, their prompts and their replies.

A prompt asks for a JSON object with a given schema, which every engine enforces. Left out: the text of the prompt and
the meaning of the object (judges define both), and how many prompts are sent at once (each engine decides). This module
never imports torch or vLLM.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.core.config import Settings
from tasks.engines import _models

WHAT = "language model"
ENGINES = {
    "vllm_offline": ("tasks.engines.vllm.generator", "VllmGenerator"),
    "openai_server": ("tasks.engines.openai.server", "ServerGenerator"),
}
NONCE_TOKENS = 16  # maximum tokens of a nonce in a reply; it takes 7 or 8 (docs/language-models.md#behind-a-server)
TOP = 8  # alternatives requested for each token: enough for four labels, each written in two ways
HASHED_FILES = (
    *_models.HASHED_FILES, "vocab.json", "merges.txt", "*.model", "tokenizer_config.json", "generation_config.json",
    "chat_template.jinja", "*.py",
)  # fmt: skip


class Offline(Settings):
    """How vLLM runs the model in this process.

    Attributes:
        quantization: vLLM's name of the method; None reads it from the model.
        tensor_parallel: GPUs that the model is split across.
        gpu_memory_share: Share of each GPU's memory that vLLM takes; None keeps vLLM's default.
        max_sequences: Maximum requests in one step of the model; None keeps vLLM's default.
        batch_tokens: Maximum tokens in one step; None keeps vLLM's default.
        prefix_caching: Whether a beginning that several prompts share is read only once.
        batch_invariant: Ask vLLM for results that do not depend on the other requests in a batch, at some cost in
            speed.
        trust_remote_code: Run Python code that comes with the model.
        reasoning_parser: vLLM's name of the parser that separates thoughts from the reply (`qwen3`, `deepseek_r1`, …);
            needed where `thinking` is true.
    """

    quantization: str | None = None
    tensor_parallel: Annotated[int, Field(ge=1)] = 1
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] | None = None
    max_sequences: Annotated[int, Field(ge=1)] | None = None
    batch_tokens: Annotated[int, Field(ge=64)] | None = None
    prefix_caching: bool = True
    batch_invariant: bool = False
    trust_remote_code: bool = False
    reasoning_parser: str | None = None


class Server(Settings):
    """Addresses of OpenAI-compatible servers, and limits of requests to them.

    Attributes:
        urls: Base URLs, such as `http://gpu-1:8000/v1`. Several servers share the work.
        served_name: The model's name on the servers; None uses `model`.
        api_key_env: Environment variable that holds the key; None sends no key.
        concurrency: Maximum requests in flight, over all servers.
        timeout_s: Timeout of one request, in seconds.
        retries: How often a request is sent again after a lost connection, HTTP 429 or 5xx, with growing pauses.
        nonce: Require four letters at the end of each reply that only its request names, to detect a proxy that mixes
            up replies. A reply without them counts as lost and is requested again.
    """

    urls: Annotated[list[str], Field(min_length=1)]
    served_name: str | None = None
    api_key_env: str | None = None
    concurrency: Annotated[int, Field(ge=1)] = 256
    timeout_s: Annotated[float, Field(gt=0)] = 120
    retries: Annotated[int, Field(ge=0)] = 5
    nonce: bool = False


class GeneratorConfig(_models.ModelConfig):
    """Settings of a language model.

    Attributes:
        engine: `vllm_offline` loads the model in this process; `openai_server` sends requests to servers that run it.
        dtype: vLLM's number format; `auto` is the model's own. For a server, the format it was started with.
        max_tokens: Maximum tokens of prompt and reply together.
        seed: Seed of sampling, if `temperature` is above 0.
        temperature: 0 takes the most likely token each time.
        top_p: Share of the probability mass to sample from.
        thinking: Whether a reasoning model may think before it answers; None for models that can't. Thoughts are never
            read as a reply.
        thinking_tokens: Maximum tokens of thought and reply together, if the model may think.
        offline: Settings of `vllm_offline`.
        server: Settings of `openai_server`.
    """

    engine: Literal["vllm_offline", "openai_server"] = "vllm_offline"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_tokens: Annotated[int, Field(ge=128)] = 8192
    seed: Annotated[int, Field(ge=0)] = 0
    temperature: Annotated[float, Field(ge=0, le=2)] = 0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1
    thinking: bool | None = None
    thinking_tokens: Annotated[int, Field(ge=64)] = 2048
    offline: Offline = Offline()
    server: Server | None = None

    @property
    def gpus(self) -> int:
        """GPUs that the model uses on this machine: 0 if a server runs it."""
        return _models.gpus_held(self.offline.tensor_parallel) if self.engine == "vllm_offline" else 0

    def describe(self) -> dict[str, object]:
        """The generator's part of a version, for any engine: model, number format and sampling.

        Raises:
            EngineError: The model's files are missing.
        """
        return {
            **_models.identity(self, WHAT, HASHED_FILES),
            "dtype": self.dtype,
            "quantization": self.offline.quantization,
            "max_tokens": self.max_tokens,
            "thinking": self.thinking,
            "thinking_tokens": self.thinking_tokens if self.thinking else None,
            "reasoning_parser": self.offline.reasoning_parser if self.thinking else None,
            "drawing": self.model_dump(include={"temperature", "top_p", "seed"}) if self.temperature else None,
            "nonce": self.nonce,
        }

    def reply_tokens(self, prompt: "Prompt") -> int:
        """Maximum tokens of the reply to a prompt, with thought and nonce."""
        tokens = self.thinking_tokens if self.thinking else prompt.max_tokens
        return tokens + NONCE_TOKENS if self.nonce else tokens

    @property
    def nonce(self) -> bool:
        """Whether replies repeat a nonce of their request."""
        return self.server is not None and self.server.nonce

    def check_samples(self, samples: int) -> None:
        """Refuse to sample several replies that would be identical.

        Raises:
            ValueError: More than one sample at temperature 0.
        """
        if samples > 1 and self.temperature == 0:
            raise ValueError(
                f"asks for {samples} samples at temperature 0, which are all the same; "
                "set model.temperature, or samples: 1"
            )

    @model_validator(mode="after")
    def _runs(self) -> Self:
        if self.engine == "openai_server" and self.server is None:
            raise ValueError("uses engine openai_server without a server; add server.urls")
        if self.engine != "openai_server" and self.server is not None:
            raise ValueError(f"sets server, which {self.engine} does not use; remove it")
        if self.engine == "vllm_offline" and self.thinking and self.offline.reasoning_parser is None:
            raise ValueError(
                "lets the model think without a reasoning parser; add offline.reasoning_parser, "
                "vLLM's name for it, such as qwen3 or deepseek_r1"
            )
        return self


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to the model.

    Attributes:
        user: Evidence first, question last. Prompts with a common beginning should follow one another.
        schema: JSON schema of the reply, an object. Equal schemas should be the same object: engines compile each once.
        max_tokens: Maximum tokens of the reply; a longer one is cut off, with `finish` as `length`.
        alternatives: Return the most likely alternatives of each token, which takes some time and many bytes.
    """

    system: str
    user: str
    schema: Mapping[str, object]
    max_tokens: int
    alternatives: bool = False


Top = tuple[tuple[str, float], ...]


class Token:
    """A token of a reply.

    Attributes:
        text: The text that it adds to the reply.
    """

    __slots__ = ("_top", "text")

    def __init__(self, text: str, top: Top | Callable[[], Top]) -> None:
        self.text, self._top = text, top

    @property
    def top(self) -> Top:
        """The most likely tokens at its position, with log-probabilities; the token itself if it is among them.

        Few tokens are ever inspected, so an engine may pass a function that reads them.
        """
        if callable(self._top):
            self._top = self._top()
        return self._top

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and (self.text, self.top) == (other.text, other.top)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Token({self.text!r}, {self.top!r})"


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply without thoughts. `text` is the concatenation of the tokens' texts."""

    text: str
    finish: Literal["stop", "length"]
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """The result of one prompt: `samples` replies, or the reason why there are none.

    Attributes:
        failure: `too_long` (the prompt leaves no room for a reply), `refused` (by the server), or `types.OUTAGE`, after
            the last retry.
        tokens_in: Tokens of the prompt, including `tokens_cached`.
        tokens_out: Tokens written, with thoughts.
    """

    replies: tuple[Reply, ...] = ()
    failure: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> dict[str, int]:
        """The three token counts by name, as in every result that comes from a reply."""
        return {"tokens_in": self.tokens_in, "tokens_cached": self.tokens_cached, "tokens_out": self.tokens_out}


@dataclass(frozen=True, slots=True)
class Example:
    """The reply that a model should learn to give to a prompt, or the reason why there is none (for distillation).

    Attributes:
        reply: JSON text, in the form that the schema's grammar produces.
        problem: Short machine-readable reason; None if there is a reply.
    """

    reply: str = ""
    problem: str | None = None


class Generator:
    """A language model, loaded (or connected to) on first use. Not thread-safe."""

    def __init__(self, config: GeneratorConfig) -> None:
        self._config = config

    def describe(self) -> dict[str, object]:
        """Everything that can change a reply, to be hashed into a version. Loads no model.

        Raises:
            EngineError: The model's files are missing.
        """
        return self._config.describe()

    def generate(self, prompts: Sequence[Prompt], samples: int = 1) -> list[Generated]:
        """The replies to each prompt, in order. At temperature 0 samples are the same reply, generated once.

        A prompt that leaves less room than the reply's maximum fails as `too_long`.

        Raises:
            EngineError: The model can't be loaded, no server answers, or a server refuses every request; no replies are
                returned.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free the model; a later call loads it again."""


def open_generator(config: GeneratorConfig) -> Generator:
    """The generator that a config describes. Nothing is loaded before its first use."""
    module, name = ENGINES[config.engine]
    made: Generator = getattr(importlib.import_module(module), name)(config)
    return made
