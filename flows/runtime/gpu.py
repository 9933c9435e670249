"""One slot for the GPU, so that runs side by side don't load two models onto it: Prefect's concurrency limits.

Whoever wants the slot takes a turn first, and gives it back once it has the slot. A run that only looks for the slot
now and then, while another gives it back and takes it again at once, would wait forever; with turns, it is next.
Where these limits are not set up (docs/operations.md), nobody waits and nothing fails.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency

from flows.runtime.progress import logger
from flows.runtime.temporary_server import temporary_server

SLOT, TURN = "leadline-gpu", "leadline-gpu-turn"
LEASE_S = 300.0  # so long after its holder has died, a slot is free again


class Closing(Protocol):
    """A context, a judge or a grader: what holds models."""

    def close(self) -> None:
        """Free them."""


@contextmanager
def slot(gpus: int, contexts: Iterable[Closing]) -> Iterator[None]:
    """Hold the slot while the block runs, waiting for it if need be; where no GPU is used, do nothing.

    Args:
        gpus: That the block's models hold. One slot stands for all of the machine: an engine takes the first GPUs that
            it finds, whoever else is on them.
        contexts: Whose models are freed before the slot is given back.
    """
    with ExitStack() as held:
        if gpus:
            with ExitStack() as turn:
                _take(turn, TURN)
                if _holders(SLOT):
                    logger().info("Waiting for the GPU: another run holds the limit %s.", SLOT)
                _take(held, SLOT)
            for ctx in contexts:
                held.callback(ctx.close)
        yield


class Shared:
    """The slot for a long run, which gives way to others; a context manager around all that uses the GPU.

    Args: see `slot`.
    """

    def __init__(self, gpus: int, contexts: Iterable[Closing]) -> None:
        self._gpus, self._contexts = gpus, tuple(contexts)
        self._held = ExitStack()

    def __enter__(self) -> "Shared":
        self._held.enter_context(slot(self._gpus, self._contexts))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def wanted(self) -> bool:
        """Whether another run waits for the slot."""
        return bool(self._gpus) and _holders(TURN) > 0

    def give_way(self) -> None:
        """Free the models, give the slot back, and take it again once whoever waits has had it."""
        self._held.close()
        self._held.enter_context(slot(self._gpus, self._contexts))


def _take(held: ExitStack, name: str) -> None:
    """Take a limit's slot. A server that fails to answer stops no night: then this run goes on without."""
    try:
        with temporary_server():  # a verb that runs no flow has none yet
            pass
        held.enter_context(concurrency(name, lease_duration=LEASE_S, raise_on_lease_renewal_failure=False))
    except Exception as error:
        logger().warning("Going on without the limit %s (%s).", name, type(error).__name__)


def _holders(name: str) -> float:
    """How many hold a limit's slots; 0 where there is no such limit, or nobody to ask."""
    try:
        with get_client(sync_client=True) as client:
            return client.read_global_concurrency_limit_by_name(name).active_slots
    except Exception:
        return 0
