"""Starts and stops vLLM, for every engine that uses it.

The model runs in vLLM's own processes; ending them frees all its memory. Left out: requests to the model. vLLM is
imported on first use.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from tasks.core import leash
from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._classifiers import ClassifierConfig
from tasks.engines.generator import GeneratorConfig

T = TypeVar("T")
# Report no usage, log only errors, and start worker processes afresh instead of forking.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
ENDS_WITHIN_S = 30
CPU_CACHE_BYTES = 1 << 30  # for models with a KV cache; vLLM's default is nearly all of the memory


class Host:
    """At most one model in vLLM, with its processes.

    Attributes:
        llm: `vllm.LLM`; None before `load` and after `close`.
    """

    def __init__(self, config: ClassifierConfig | GeneratorConfig, what: str, memory: str, instead: str) -> None:
        """Prepare without loading the model.

        Args:
            what: The kind of model, for messages.
            memory: How to reduce its memory, for messages.
            instead: What to use if vLLM can't run it, for messages.
        """
        self._config, self._model = config, f"{what} {config.model!r}"
        self._what, self._memory, self._instead = what, memory, instead
        self.llm: Any = None
        self._processes: list[Any] = []

    def load(self, environment: Mapping[str, str], **own: Any) -> None:  # noqa: ANN401
        """Load the model.

        Args:
            environment: Environment variables for this model only.
            own: Arguments of `vllm.LLM` for this kind of model.

        Raises:
            EngineError: The model's folder does not exist, vLLM is not installed, or vLLM can't load the model.
        """
        name, _ = _models.source(self._config, self._what)
        vllm = library()
        others = _children()
        try:
            with _environment(environment), _without_interrupts():
                self.llm = vllm.LLM(model=name, revision=self._config.revision, **{**_settings(self._config), **own})
        except Exception as error:  # vLLM's errors have no common base
            raise self._load_error(error) from error
        self._processes = [process for process in _children() if process not in others]

    def run(self, work: Callable[[Any], T], amount: str) -> T:
        """The result of a function that uses the loaded model.

        Raises:
            EngineError: vLLM fails; the model is freed.
        """
        try:
            return work(self.llm)
        except Exception as error:  # vLLM's errors have no common base
            self.close()
            raise EngineError(
                f"vLLM failed on {amount} ({type(error).__name__}); its own messages say why. If it lacked memory, "
                f"{self._memory}."
            ) from error

    def close(self) -> None:
        """End vLLM's processes, which frees their memory."""
        if self.llm is not None:
            import psutil  # noqa: PLC0415 - installed with vLLM

            llm, self.llm = self.llm, None
            # A normal shutdown takes at most five seconds, or hangs. After a signal it gets less time.
            interrupted = not isinstance(sys.exception(), Exception | None)
            with contextlib.suppress(Exception):  # it may have died already
                llm.llm_engine.engine_core.shutdown(timeout=0 if interrupted else None)
            # vLLM does not wait for all of its processes, and the next model needs their memory.
            left = psutil.wait_procs(self._processes, timeout=ENDS_WITHIN_S)[1]
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, timeout=ENDS_WITHIN_S)

    def _load_error(self, error: Exception) -> EngineError:
        if "max_model_len" in str(error):
            return EngineError(
                f"{self._model} reads fewer tokens than max_tokens, {self._config.max_tokens}. Lower it."
            )
        if "architectures" in str(error):
            return EngineError(f"vLLM does not serve {self._model} ({reason(error)}). Use {self._instead}.")
        return EngineError(
            f"vLLM can't load {self._model} ({reason(error)}). Its own messages say more. If it lacked memory, "
            f"{self._memory}; else use {self._instead}."
        )


def _settings(config: ClassifierConfig | GeneratorConfig) -> dict[str, Any]:
    """Arguments of `vllm.LLM` that are the same for all kinds of models."""
    placed = config.offline if isinstance(config, GeneratorConfig) else config
    cpu = on_cpu()
    memory: dict[str, Any] = {}
    if placed.gpu_memory_share is not None:
        memory = {"gpu_memory_utilization": placed.gpu_memory_share}
    elif cpu:
        memory = {"kv_cache_memory_bytes": CPU_CACHE_BYTES}
    return {
        "dtype": config.dtype,
        "max_model_len": config.max_tokens,
        "tensor_parallel_size": placed.tensor_parallel,
        "trust_remote_code": placed.trust_remote_code,
        "enforce_eager": cpu,  # on CPUs, compiling needs a C++ compiler and does not pay off
        "use_tqdm_on_load": False,
        "worker_extension_cls": f"{leash.__name__}.{leash.Leash.__name__}",
        **memory,
    }


def on_cpu() -> bool:
    """Whether the installed vLLM is built for CPUs.

    Raises:
        EngineError: vLLM is not installed.
    """
    library()
    from vllm.platforms import current_platform  # noqa: PLC0415

    return bool(current_platform.is_cpu())


def reason(error: Exception) -> str:
    """The first informative line of a vLLM error, at most 200 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # pydantic's first line only states the number of errors.
    line = lines[1] if isinstance(error, ValueError) and len(lines) > 1 else (lines or [type(error).__name__])[0]
    return line[:200]


def library() -> Any:  # noqa: ANN401
    """Import vLLM with the variables of `ENVIRONMENT` that the environment does not set.

    Raises:
        EngineError: vLLM is not installed.
    """
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    os.environ[leash.OWNER] = str(os.getpid())
    try:
        import vllm  # noqa: PLC0415 - optional, and takes ten seconds
    except ModuleNotFoundError as error:
        raise EngineError(
            f"engine vllm_offline needs the package {error.name!r}. Run: pip install -r requirements-gpu.lock"
        ) from error
    return vllm


@contextlib.contextmanager
def _environment(own: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes started inside this context."""
    before = {variable: os.environ.get(variable) for variable in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl+C for the processes started inside this context, since a terminal sends it to all of them.

    They would stop in the middle of their imports, with their own tracebacks; this process ends them instead. The
    signal is only blocked in this thread, so another thread of this process receives it.
    """
    resource_tracker.ensure_running()  # otherwise it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _children() -> list[Any]:
    """Descendants of this process, except for Python's resource tracker."""
    import psutil  # noqa: PLC0415

    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may have ended already
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.append(process)
    return found
