"""Encodes requests to OpenAI-compatible servers and decodes their answers, without connections.

Only the parts of an answer that a reply needs are decoded; log-probabilities are nine tenths of its bytes. Left out:
streaming, tools, images.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from tasks.engines.generator import TOP, Generated, GeneratorConfig, Prompt, Reply, Token, Top
from tasks.engines.openai._nonce import with_nonce, without_nonce

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError)
BEFORE_REPLY = "</think>"  # the end of a thought, if the server leaves thoughts in the reply
LEAST_LOGPROB = -9999.0  # JSON has no -inf; servers send this for an impossible token
TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|maximum (model|sequence) length|max_model_len|max_new_tokens` must be|too long",
    re.IGNORECASE,
)
_encoder = msgspec.json.Encoder()


class _Body(Struct, omit_defaults=True):
    """A request. `max_tokens` is the older name of `max_completion_tokens`, which every server accepts."""

    model: str
    messages: list[dict[str, str]]
    max_tokens: int
    response_format: Raw
    temperature: float
    logprobs: bool = False
    top_logprobs: int = 0
    n: int = 1
    top_p: float | None = None
    seed: int | None = None
    chat_template_kwargs: dict[str, bool] | None = None


class _Alternative(Struct, gc=False):
    token: str
    logprob: float


class _Token(Struct, gc=False):
    token: str
    top_logprobs: Raw = Raw(b"null")


class _Logprobs(Struct, gc=False):
    content: list[_Token] | None = None


class _Message(Struct, gc=False):
    """A message. Thoughts are in other fields, which are not read."""

    content: str | None = None


class _Choice(Struct, gc=False):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Details(Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Answer(Struct, gc=False):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


class _Problem(Struct):
    message: str | None = None
    code: str | int | None = None
    param: str | None = None


class _Refusal(_Problem):
    """A refused request. Servers put the problem in different places."""

    error: _Problem | str | None = None


_answers = msgspec.json.Decoder(_Answer)
_alternatives = msgspec.json.Decoder(list[_Alternative] | None)


class Wire:
    """Requests and answers of one call: `samples` replies of the model to each prompt."""

    def __init__(self, config: GeneratorConfig, model: str, samples: int) -> None:
        """Store what all requests share.

        Args:
            model: The model's name on the server.
        """
        self._config, self._model, self._samples = config, model, samples
        self._formats: dict[int, tuple[object, Raw]] = {}  # by the schema's id, unique while the schema is kept

    def encode(self, prompt: Prompt) -> bytes:
        """A request's body. At temperature 0 only one reply is requested, because all samples are the same."""
        c = self._config
        body = _Body(
            model=self._model,
            messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            max_tokens=c.reply_tokens(prompt),
            response_format=self._format(prompt),
            temperature=c.temperature,
        )
        if prompt.alternatives:
            body.logprobs, body.top_logprobs = True, TOP
        if c.temperature:
            body.n, body.top_p, body.seed = self._samples, c.top_p, c.seed
        if c.thinking is not None:
            body.chat_template_kwargs = {"enable_thinking": c.thinking}
        return _encoder.encode(body)

    def decode(self, prompt: Prompt, raw: bytes) -> Generated:
        """The replies in a server's answer. A missing reply is empty.

        A prompt that leaves less room than the reply's maximum fails as `too_long`, even if the server has more room,
        because a verdict must not depend on a server's settings.

        Raises:
            MALFORMED: The answer is not a chat completion.
            MixedUpError: It answers a different request, or the server ignores the schema.
        """
        answer = _answers.decode(raw)
        if not answer.choices:
            raise msgspec.ValidationError("no choices")
        usage = answer.usage or _Usage()
        details = usage.prompt_tokens_details or _Details()
        fits = usage.prompt_tokens + self._config.reply_tokens(prompt) <= self._config.max_tokens
        return Generated(
            replies=self._replies(prompt, answer.choices) if fits else (),
            failure=None if fits else "too_long",
            tokens_in=usage.prompt_tokens,
            tokens_cached=details.cached_tokens or 0,
            tokens_out=usage.completion_tokens or 0,
        )

    def _replies(self, prompt: Prompt, choices: Sequence[_Choice]) -> tuple[Reply, ...]:
        different = choices[: 1 if self._config.temperature == 0 else self._samples]
        replies = [_reply(choice) for choice in different]
        if self._config.nonce:
            replies = [without_nonce(prompt, reply) for reply in replies]
        if self._config.temperature == 0:
            return tuple(replies) * self._samples
        return (*replies, *[Reply("", "stop")] * (self._samples - len(replies)))

    def _format(self, prompt: Prompt) -> Raw:
        if self._config.nonce:
            return _format(with_nonce(prompt))
        if id(prompt.schema) not in self._formats:
            self._formats[id(prompt.schema)] = prompt.schema, _format(prompt.schema)
        return self._formats[id(prompt.schema)][1]


def _format(schema: Mapping[str, object]) -> Raw:
    named = {"name": "reply", "strict": True, "schema": dict(schema)}
    return Raw(_encoder.encode({"type": "json_schema", "json_schema": named}))


def without_thought(text: str) -> str:
    """A reply without the thought at its beginning. The thought's opening mark may be in the prompt.

    A JSON object begins with a brace; marks inside it are kept.
    """
    if text.lstrip().startswith("{"):
        return text
    thought, mark, rest = text.partition(BEFORE_REPLY)
    if mark:
        return rest.lstrip()
    return "" if thought.lstrip().startswith("<think>") else text


def tokens_of(text: str, given: Sequence[tuple[str, Top | Callable[[], Top]]]) -> tuple[Token, ...]:
    """The tokens of a reply, found from the end: tokens before them are thoughts, and those after them end marks.

    Servers may strip the white space that a token adds; it is restored. Text without matching tokens (such as a
    character split in two) becomes one first token without alternatives, so the tokens' texts always add up to the
    reply.

    Args:
        given: The server's tokens, with their alternatives.
    """
    texts = [token for token, _ in given]
    if all(texts) and "".join(texts) == text:
        return tuple([Token(token, top) for token, top in given])
    found: list[Token] = []
    end = len(text)
    for token, top in reversed(given):
        if end == 0:
            break
        if text.endswith(token, 0, end):
            start = end - len(token)
        elif token.endswith(text[:end]):
            start = 0  # this token spans the end of the thought and the start of the reply
        elif found and text.endswith(token, 0, blank := len(text[:end].rstrip())):
            # The space between two tokens belongs to the later one.
            last, space = found[-1], text[blank:end]
            listed = tuple((space + t if t == last.text else t, p) for t, p in last.top)
            found[-1] = Token(space + last.text, listed)
            start, end = blank - len(token), blank
        elif found:
            break
        else:
            continue
        if token or found:
            found.append(Token(text[start:end], top))
        end = start
    if found and end:
        found.append(Token(text[:end], ()))
    return tuple(reversed(found))


def is_too_long(raw: bytes) -> bool:
    """Whether a server refused a prompt because it is too long for the model."""
    problem = _problem(raw)
    return problem.code == "context_length_exceeded" or TOO_LONG.search(problem.message or "") is not None


def refused_field(raw: bytes) -> str | None:
    """The field of a request that a refusal names, if any. The rest of a refusal may quote the prompt."""
    name = _problem(raw).param
    return name if name in _Body.__struct_fields__ else None


def model_names(raw: bytes) -> list[str] | None:
    """The models that a server lists; None if the list can't be read."""
    try:
        return [model.id for model in msgspec.json.decode(raw, type=_Models).data]
    except MALFORMED:
        return None


def _problem(raw: bytes) -> _Problem:
    try:
        refusal = msgspec.json.decode(raw, type=_Refusal)
    except MALFORMED:
        return _Problem()
    if isinstance(refusal.error, str):
        return _Problem(message=refusal.error)
    return refusal.error or refusal


def _reply(choice: _Choice) -> Reply:
    text = without_thought(choice.message.content or "")
    # Whatever else ends a reply cuts it off.
    finish: Literal["stop", "length"] = "stop" if choice.finish_reason == "stop" else "length"
    if not text or choice.logprobs is None:
        return Reply(text, finish)
    given = [(t.token, partial(_top, t.top_logprobs)) for t in choice.logprobs.content or ()]
    return Reply(text, finish, tokens_of(text, given))


def _top(raw: Raw) -> Top:
    try:
        found = _alternatives.decode(raw) or ()
    except MALFORMED:
        return ()  # the reply itself is usable
    return tuple([(a.token, a.logprob) for a in found if a.logprob > LEAST_LOGPROB])
