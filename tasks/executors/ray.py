"""The executor `ray`: runs shards on workers of a Ray cluster, or on several workers on this machine.

The driver (the process of the run) sends each worker one shard at a time. A worker loads the model, runs it and stores
the results. If a worker dies, its shard is sent to another worker, so each death can repeat the work of one shard at
most. A shard that kills `DEATHS` workers is set aside.

Ray is imported only in this module, with the first shard. See docs/scale.md for how to start a cluster.
"""

import contextlib
import importlib.util
import logging
import os
import pickle
import re
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, cast

from pydantic import Field

import tasks
from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.errors import ConfigError, EngineError, LeadlineError
from tasks.executors import Job, R, T, Work

DEATHS = 3  # number of workers that a shard may kill before it is set aside
DIED = "worker_died"  # failure stored for the requests of such a shard
ANSWERS_WITHIN_S = 10.0
LOG = logging.getLogger("leadline")
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0": a Ray cluster started here listens only on loopback


class Config(Settings):
    """The settings of `executor`.

    Attributes:
        address: Address of the cluster: `HOST:PORT`, `auto` for the cluster of this machine, or `local` for workers on
            this machine only, which stop when the run ends.
        workers: Number of workers, each with its own copy of the model. Each runs one shard at a time.
        cpus: CPU cores that Ray reserves for each worker.
        gpus: GPUs that Ray reserves for each worker. By default, as many as the stage's model uses.
        start_minutes: Minutes to wait for a worker to start, for example while a cluster scales up.
    """

    kind: Literal["ray"] = "ray"
    address: Annotated[str, Field(pattern=r"^(local|auto|[^/\s]+:\d{1,5})$")] = "local"
    workers: Annotated[int, Field(ge=1)] = 2
    cpus: Annotated[float, Field(ge=0)] = 1
    gpus: Annotated[float, Field(ge=0)] | None = None
    start_minutes: Annotated[float, Field(gt=0)] = 15


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker's description of itself.

    Attributes:
        name: Process id and host, for messages.
        code: See `code`.
    """

    name: str
    pid: int
    code: str


class Worker:
    """A process that loads a model and gets one shard at a time.

    Args:
        umask: Umask of the run, so that files get the same permissions as those written by the run.
    """

    def __init__(self, umask: int) -> None:
        os.umask(umask)
        self._pickled = b""
        self._work: Any = None

    def hello(self) -> Hello:
        """Return a description of this worker."""
        return Hello(f"process {os.getpid()} on {socket.gethostname()}", os.getpid(), code())

    def work(self, pickled: bytes, shard: bytes) -> tuple[object, LeadlineError | None]:
        """Return the result of a shard, or the error that ends the run. Keep the model until the work changes."""
        try:
            if pickled != self._pickled:
                self._pickled, self._work = b"", None
                work: Work[object, object] = pickle.loads(pickled)  # noqa: S301 - of the run
                work.check()
                self._pickled, self._work = pickled, work
            its: list[object] = pickle.loads(shard)  # noqa: S301 - of the run
            return self._work.stored(its) or self._work(its), None
        except LeadlineError as error:
            return None, _sent(error)


@dataclass(slots=True, eq=False)
class _Given(Generic[T, R]):
    """A job in progress.

    Attributes:
        deaths: Number of workers that died while running it.
        result: The result, once there is one.
    """

    job: Job[T, R]
    deaths: int = 0
    result: Any = None


@dataclass(slots=True, eq=False)
class _Hand:
    """The driver's view of a worker. Name and process id are set once the worker has started."""

    actor: Any
    name: str = "a new worker"
    pid: int = 0


@dataclass(slots=True)
class _Crew:
    """The current workers, all with the same number of GPUs.

    Attributes:
        starting: Workers that have not started yet, keyed by the reference to their first reply.
        proven: Whether a worker has completed a shard, which shows that the model runs.
        stillborn: Number of workers in a row that died while starting.
        since: Monotonic time of the last request for a worker.
    """

    gpus: float
    starting: dict[Any, _Hand] = field(default_factory=dict)
    idle: list[_Hand] = field(default_factory=list)
    all: list[_Hand] = field(default_factory=list)
    proven: bool = False
    stillborn: int = 0
    since: float = 0.0


class Ray:
    """Runs shards on Ray workers.

    Args:
        code: Version of the code that workers must have (see `code`); that of this process by default.
    """

    elsewhere = True

    def __init__(self, config: Config, code: str | None = None) -> None:
        self._config = config
        self._code = code
        self._crew: _Crew | None = None
        self._umask = 0

    @property
    def workers(self) -> int:
        """See `Executor`."""
        return self._config.workers

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that have started, each on its own machine."""
        return [hand.pid for hand in self._crew.all if hand.pid] if self._crew else []

    def map(self, jobs: Iterable[Job[T, R]], stop: Callable[[], bool]) -> Iterator[tuple[Job[T, R], R]]:
        """See `Executor`."""
        fresh = (_Given(job) for job in jobs)
        again: deque[_Given[T, R]] = deque()  # retried last, because they may have killed their workers
        flying: dict[Any, tuple[_Hand, _Given[T, R]]] = {}
        following: _Given[T, R] | None = None
        work: object = None
        pickled = b""
        try:
            while True:
                following = following or next(fresh, None) or (again.popleft() if again else None)
                over = following is None or stop()
                if over and not flying:
                    return
                crew = self._hired(following.job) if following else cast("_Crew", self._crew)
                if following and not over and crew.idle:
                    hand = crew.idle.pop()
                    if following.job.work is not work:
                        work = following.job.work
                        pickled = pickle.dumps(work)
                    sent = hand.actor.work.remote(pickled, pickle.dumps(following.job.shard))
                    flying[sent] = (hand, following)
                    following = None
                    continue
                for ref in self._ready(crew, flying):
                    hand, given = flying.pop(ref)
                    if self._ended(crew, hand, given, ref):
                        yield given.job, given.result
                    else:
                        again.append(given)
        except BaseException:  # including signals; workers must stop too
            self.close()
            raise

    def close(self) -> None:
        """See `Executor`. Ray itself shuts down when the run ends."""
        if self._crew:
            for hand in self._crew.all:
                with contextlib.suppress(Exception):  # the cluster may be gone
                    _ray().kill(hand.actor)
            self._crew = None

    def _ended(self, crew: _Crew, hand: _Hand, given: _Given[T, R], ref: Any) -> bool:  # noqa: ANN401 - Ray has no types
        """Return whether a job has a result. If not, its worker died and was replaced.

        Raises:
            EngineError: The work can't be done.
        """
        try:
            given.result, trouble = _ray().get(ref)
        except _ray().exceptions.RayActorError as error:
            LOG.warning("%s died (%s) and is replaced.", hand.name, _line(error))
            self._bury(crew, hand)
            given.deaths += 1
            if given.deaths == DEATHS:
                given.result = _set_aside(crew, given.job, hand, error)
            return given.deaths == DEATHS
        if trouble:
            raise trouble
        crew.idle.append(hand)
        crew.proven = True
        return True

    def _hired(self, job: Job[Any, Any]) -> _Crew:
        """Return the workers. Start them for the first shard, and again if a stage needs another number of GPUs."""
        gpus = _work(job).gpus if self._config.gpus is None else self._config.gpus
        if self._crew and self._crew.gpus != gpus:
            self.close()
        if self._crew is None:
            self._connect()
            self._crew = _Crew(gpus)
            for _ in range(self.workers):
                self._hire(self._crew)
        return self._crew

    def _hire(self, crew: _Crew) -> None:
        actor = _ray().remote(Worker)
        hand = _Hand(actor.options(num_cpus=self._config.cpus, num_gpus=crew.gpus).remote(self._umask))
        crew.all.append(hand)
        crew.since = time.monotonic()
        crew.starting[hand.actor.hello.remote()] = hand

    def _bury(self, crew: _Crew, hand: _Hand) -> None:
        """Replace a worker that died or can't be reached. Kill it in case it still runs."""
        crew.all.remove(hand)
        with contextlib.suppress(Exception):
            _ray().kill(hand.actor)
        self._hire(crew)

    def _ready(self, crew: _Crew, flying: dict[Any, Any]) -> list[Any]:
        """Return references to finished results, after waiting for a result or for a worker to start.

        Raises:
            EngineError: No worker started in time, or workers can't start.
        """
        left = None
        if not flying:
            left = max(0.0, crew.since + 60 * self._config.start_minutes - time.monotonic())
        ready, _ = _ray().wait([*flying, *crew.starting], num_returns=1, timeout=left)
        if not ready:
            raise EngineError(
                f"executor.address {self._config.address!r}: no worker with {self._config.cpus:g} CPU cores and "
                f"{crew.gpus:g} GPUs has started within {self._config.start_minutes:g} minutes. Add nodes, lower "
                "executor.cpus or executor.gpus, or raise executor.start_minutes."
            )
        for ref in [ref for ref in ready if ref in crew.starting]:
            self._welcome(crew, crew.starting.pop(ref), ref)
        return [ref for ref in ready if ref in flying]

    def _welcome(self, crew: _Crew, hand: _Hand, ref: Any) -> None:  # noqa: ANN401 - Ray has no types
        exceptions = _ray().exceptions
        try:
            hello: Hello = _ray().get(ref)
        except (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError) as error:
            raise EngineError(
                f"a worker can't start Leadline ({_line(error)}). Install {code()} on its machine."
            ) from None
        except exceptions.RayActorError as error:
            crew.stillborn += 1
            if crew.stillborn == DEATHS:
                raise EngineError(
                    f"{DEATHS} workers in a row died while they started ({_line(error)}). See Ray's logs of them."
                ) from None
            self._bury(crew, hand)
            return
        if hello.code != (own := self._code or code()):
            raise EngineError(
                f"{hello.name} has {hello.code}, but the run has {own}. Install the same Leadline on all machines."
            )
        hand.name, hand.pid = hello.name, hello.pid
        crew.idle.append(hand)
        crew.stillborn = 0

    def _connect(self) -> None:
        self._umask = os.umask(0o077)  # reading the umask requires setting it
        os.umask(self._umask)
        own = self._config.address == "local"
        if own:
            os.environ.setdefault(LOOPBACK, "0")  # must be set before Ray is imported
        ray = _ray()
        if ray.is_initialized():
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        local = {"num_cpus": -(-self.workers * self._config.cpus // 1), "include_dashboard": False} if own else {}
        try:
            if ":" in self._config.address:
                host, _, port = self._config.address.rpartition(":")
                socket.create_connection((host, int(port)), ANSWERS_WITHIN_S).close()  # Ray itself tries for minutes
            with _handlers_kept():
                ray.init(address=self._config.address, log_to_driver=False, configure_logging=False, **local)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise EngineError(
                f"executor.address {self._config.address!r}: no Ray cluster can be reached ({_line(error)}). "
                "Start it with `ray start --head`, or correct the address."
            ) from error


def code() -> str:
    """Return Leadline's version and a hash of its code, because two builds may share a version."""
    root = Path(tasks.__file__).parent
    hashed = keys.key(*(path.read_bytes() for path in sorted(root.rglob("*.py"))), size=keys.SHORT_HEX)
    return f"leadline {metadata.version('leadline')} ({hashed})"


def _work(job: Job[T, R]) -> Work[T, R]:
    return cast("Work[T, R]", job.work)


def _set_aside(crew: _Crew, job: Job[T, R], hand: _Hand, error: Exception) -> R:
    """Set aside a shard that killed its workers. Return the stored result if a worker stored one before it died.

    Raises:
        EngineError: No shard was completed so far, so the model itself may kill the workers.
    """
    if not crew.proven:
        raise EngineError(
            f"{hand.name} and others died before any had completed a shard ({_line(error)}). Give workers more memory, "
            "or try the judge with `leadline judges check`."
        ) from None
    work = _work(job)
    return work.stored(job.shard) or work.set_aside(job.shard, DIED)


def _sent(error: LeadlineError) -> LeadlineError:
    """Convert a worker's error to an `EngineError` with the same exit code and `transient`."""
    sent = EngineError(f"process {os.getpid()} on {socket.gethostname()}: {error}")
    vars(sent).update(exit_code=error.exit_code, transient=error.transient)
    return sent


def _line(error: Exception) -> str:
    """Return the first sentence of an error's last line, at most 200 characters. Ray adds advice after it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return re.split(r"[.:]\s", lines[-1] if lines else type(error).__name__)[0][:200]


def _ray() -> Any:  # noqa: ANN401 - optional package
    import ray  # noqa: PLC0415 - optional, and takes seconds

    return ray


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore the signal handlers that Ray replaces: the command's own handler of SIGTERM ends a run with a message."""
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items() if here else ():
            signal.signal(number, handler)


def build(config: Config, where: object) -> Ray:
    """Return the executor.

    Raises:
        ConfigError: Ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        remedy = "Run: pip install 'leadline[ray]', or write `kind: local`"
        raise ConfigError(where, "executor.kind", "is ray, which is not installed", f"{remedy}.")
    return Ray(config)
