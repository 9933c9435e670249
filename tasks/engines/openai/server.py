"""The engine `openai_server`: a language model on servers with OpenAI's chat completions API, such as vLLM.

Several servers share the work. Prompts with the same system text and the same first `BEGINNING` characters go to the
same server, whose prefix cache then avoids reading them again. A server without prompts takes one from the server with
the most prompts left, so that all stay busy. An unanswered request is repeated after growing pauses, on a server that
answers.

Left out: the content of requests and answers (`_wire.py`), connections (`_connections.py`), and rate limits without
HTTP 429.
"""

import asyncio
import contextlib
import gc
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import xxhash
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from tasks.core.errors import EngineError
from tasks.core.types import OUTAGE
from tasks.engines.generator import TOP, Generated, Generator, GeneratorConfig, Prompt, Server
from tasks.engines.openai import _wire as wire
from tasks.engines.openai._connections import AgainError, NoAnswerError, Servers, Target
from tasks.engines.openai._nonce import MixedUpError

BEGINNING = 512  # characters: longer than the beginning that all prompts share, shorter than most evidence
GIVE_UP_AFTER = 20  # successive outages
NEW_OBJECTS = 100_000  # objects between garbage collections; Python's default, 700, is under ten requests in flight


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds before a request is sent again: growing, and at least as many as the server asks for.

    Attributes:
        first_s: The first pause; each further one is twice as long.
        longest_s: Maximum of all pauses, even if a server asks for more.
    """

    first_s: float = 0.5
    longest_s: float = 60.0

    def __call__(self, state: RetryCallState) -> float:
        """The next pause, with a random part that differs between requests."""
        error = state.outcome.exception() if state.outcome else None
        requested = error.pause_s if isinstance(error, AgainError) else 0
        growing = wait_exponential_jitter(multiplier=self.first_s, max=self.longest_s, jitter=self.first_s)
        return max(growing(state), min(requested, self.longest_s))


class _GaveUpError(Exception):
    """The call gives up its remaining prompts."""


class ServerGenerator(Generator):
    """See the module. Connections are kept between calls."""

    def __init__(self, config: GeneratorConfig, pauses: Pauses | None = None) -> None:
        super().__init__(config)
        if config.server is None:
            raise EngineError("engine openai_server is given no server. Add server.urls.")
        self._pauses = pauses or Pauses()
        self._server: Server = config.server
        self._name = config.server.served_name or config.model
        self._runner: asyncio.Runner | None = None
        self._servers: Servers | None = None
        self._accepted = False  # whether any prompt was; if so, a refusal concerns one prompt, not all requests

    def generate(self, prompts: Sequence[Prompt], samples: int = 1) -> list[Generated]:
        """The replies to each prompt, in order. Can't be called in a running event loop.

        Prompts without an answer fail as `OUTAGE`. If servers stop answering, the remaining prompts are not tried.

        Raises:
            NoAnswerError: No server answers at all.
            EngineError: The key is missing or not accepted, the model is not served, or a server refuses even a
                harmless prompt.
        """
        if not prompts:
            return []
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        with _rare_collections():
            return self._runner.run(self._generate(prompts, wire.Wire(self._config, self._name, samples)))

    def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        if self._runner is not None:
            if self._servers is not None:
                self._runner.run(self._servers.close())
            self._runner.close()
        self._runner = self._servers = None

    async def _generate(self, prompts: Sequence[Prompt], form: wire.Wire) -> list[Generated]:
        if self._servers is None:
            servers = Servers(self._server, self._name)
            try:
                await servers.check()
            except BaseException:
                await servers.close()
                raise
            self._servers = servers
        call = _Call(self._servers, self._server.retries, self._pauses, form, prompts, accepted=self._accepted)
        made = await call.run(self._server.concurrency)
        self._accepted = call.accepted
        return made


class _Call:
    """The prompts of one call of `generate`."""

    def __init__(
        self,
        servers: Servers,
        retries: int,
        pauses: Pauses,
        form: wire.Wire,
        prompts: Sequence[Prompt],
        *,
        accepted: bool,
    ) -> None:
        self._servers, self._retries, self._pauses, self._form, self._prompts = servers, retries, pauses, form, prompts
        self._queues = Queues(prompts, len(servers.targets))
        self._made = [Generated(failure=OUTAGE)] * len(prompts)
        self._outages = 0  # successive ones
        self._problem = ""  # the latest one
        self._probing = asyncio.Lock()
        self.accepted = accepted

    async def run(self, concurrency: int) -> list[Generated]:
        """The result of each prompt, with up to `concurrency` requests at a time."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for n in range(min(concurrency, len(self._prompts))):
                    tasks.create_task(self._work(n % len(self._servers.targets)))
        except BaseExceptionGroup as group:
            errors = group.split(_GaveUpError)[1]
            if errors is not None:
                raise errors.exceptions[0] from None  # they are all alike
        if all(one.failure == OUTAGE for one in self._made):
            raise NoAnswerError(
                f"no server answered any of {len(self._made)} prompts (the last: {self._problem}). Check that it "
                "runs, and its log; lower server.concurrency or raise server.timeout_s if it is overloaded."
            )
        return self._made

    async def _work(self, server: int) -> None:
        """Send prompts one at a time until none are left."""
        while (n := self._queues.take(server)) is not None:
            retrying = AsyncRetrying(
                stop=stop_after_attempt(self._retries + 1),
                wait=self._pauses,
                retry=retry_if_exception_type(AgainError),
                reraise=True,
            )
            try:
                self._made[n] = await retrying(self._ask, self._servers.targets[server], self._prompts[n])
                self._outages = 0
            except AgainError as error:
                self._problem = str(error)
                self._outages += 1
                if self._outages >= GIVE_UP_AFTER or all(target.dead for target in self._servers.targets):
                    raise _GaveUpError from None

    async def _ask(self, preferred: Target, prompt: Prompt) -> Generated:
        target = self._servers.choose(preferred)
        status, raw = await self._servers.post(target, self._form.encode(prompt))
        if status == 200:
            try:
                made = self._form.decode(prompt, raw)
            except wire.MALFORMED:
                target.failed()
                raise AgainError(f"{target.url}: the answer is not a chat completion") from None
            except MixedUpError:
                target.failed()
                raise AgainError(
                    f"{target.url}: a reply without the nonce of its request, by a proxy that mixes replies up or a "
                    "server that ignores the schema"
                ) from None
            self.accepted = True
        elif status == 413 or wire.is_too_long(raw):
            made = Generated(failure="too_long")
        else:
            await self._check_refusal(target, prompt)
            made = Generated(failure="refused")
        target.answered()
        return made

    async def _check_refusal(self, target: Target, prompt: Prompt) -> None:
        """Find out whether a server refuses this prompt or all requests, if it has accepted none so far.

        Raises:
            EngineError: It refuses all requests.
            AgainError: That can't be determined for now.
        """
        async with self._probing:
            if self.accepted:
                return
            harmless = replace(prompt, system="Answer with a JSON object.", user="Any will do.")
            status, raw = await self._servers.post(target, self._form.encode(harmless))
            if status != 200:
                field = wire.refused_field(raw)
                raise EngineError(
                    f"{target.url} refuses every request (HTTP {status}{f', because of {field}' if field else ''}). "
                    "Its log says why; it must accept a system message, response_format json_schema, n, and logprobs "
                    f"with top_logprobs {TOP}."
                )
            self.accepted = True


class Queues:
    """Numbers of prompts, in one queue for each server."""

    def __init__(self, prompts: Sequence[Prompt], servers: int) -> None:
        self._queues: list[deque[int]] = [deque() for _ in range(servers)]
        for n, prompt in enumerate(prompts):
            self._queues[home(prompt, servers)].append(n)

    def take(self, server: int) -> int | None:
        """The next prompt for a server, from the fullest queue if its own is empty; None if all are empty."""
        if own := self._queues[server]:
            return own.popleft()
        fullest = max(self._queues, key=len)
        return fullest.pop() if fullest else None


def home(prompt: Prompt, servers: int) -> int:
    """Number of the server for a prompt, from the prompt's beginning; the same in every run."""
    if servers == 1:
        return 0
    return xxhash.xxh3_64_intdigest(f"{prompt.system}\0{prompt.user[:BEGINNING]}".encode()) % servers


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: scanning everything in flight again and again takes half of the time."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
