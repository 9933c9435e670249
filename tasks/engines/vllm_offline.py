"""Pair classification by vLLM, offline: on GPUs, and on the CPU where vLLM is built for it.

The model lives in processes of vLLM's own, so that closing it frees all its memory. Numbers differ in their last
bits with the batch that a pair happens to share: what needs equal numbers keeps them, as the verdict store does.

Left out: token types other than zero, and models that vLLM knows only through transformers. Needs the extra `vllm`,
which is imported on first use.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tasks.core.errors import EngineError
from tasks.engines import _leash, _models
from tasks.engines._classifiers import WHAT, ClassifierConfig
from tasks.engines._encoder import FromEncoder
from tasks.engines.classifier import Classified, softmax

# Nothing is reported to anyone; a log line is an error; worker processes start afresh, not as copies of this one.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
ENDS_WITHIN_S = 30
CPU_CACHE_BYTES = 1 << 30  # for models that need a KV cache; vLLM's own choice is nearly all of the memory


class VllmClassifier(FromEncoder):
    """A classifier that vLLM runs (see `classifier.Classifier`)."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__(config)
        self._llm: Any = None
        self._processes: list[Any] = []

    def classify(self, pairs: Sequence[tuple[str, str]]) -> Classified:
        """Probabilities of (premise, hypothesis) pairs, in their order.

        Raises:
            EngineError: The model can't be loaded or fails to run, or a hypothesis leaves no room for a premise.
        """
        ids = self._encoder.ids(pairs)
        probabilities = np.zeros((len(pairs), self._encoder.model_config.num_labels))
        if ids:
            for i, logits in enumerate(self._run(ids)):
                probabilities[i] = softmax(logits)
        return Classified(probabilities, np.array([len(tokens) for tokens in ids], dtype=np.int64))

    def close(self) -> None:
        """End vLLM's processes, and with them what they hold of memory; a later call loads the model again."""
        if self._llm is not None:
            import psutil  # noqa: PLC0415 - vLLM brings it

            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None
            # vLLM does not wait for all of them, and the next model needs the room.
            for process in psutil.wait_procs(self._processes, timeout=ENDS_WITHIN_S)[1]:
                process.kill()

    def _run(self, ids: Sequence[Sequence[int]]) -> Iterator[npt.NDArray[np.float64]]:
        """Logits (classes,) of each pair's token ids: the softmax is that of the other engines, and applied once."""
        llm = self._load()
        prompts = [{"prompt_token_ids": tokens} for tokens in ids]
        parameters = _library().PoolingParams(use_activation=False)
        try:
            outputs = llm.classify(prompts, pooling_params=parameters, use_tqdm=False)
        except Exception as error:  # vLLM's errors have no common base
            self.close()
            raise EngineError(
                f"vLLM failed on {len(ids)} pairs ({type(error).__name__}); its own messages say why. "
                "If it lacked memory, lower batch_tokens or free some."
            ) from error
        for output in outputs:
            yield np.array(output.outputs.probs, dtype=np.float64)

    def _load(self) -> Any:  # noqa: ANN401
        if self._llm is None:
            c = self._config
            name, _ = _models.source(c, WHAT)
            for variable, value in ENVIRONMENT.items():
                os.environ.setdefault(variable, value)
            os.environ[_leash.OWNER] = str(os.getpid())
            vllm = _library()
            others = _children()
            try:
                self._llm = vllm.LLM(model=name, revision=c.revision, **_settings(c))
            except Exception as error:  # vLLM's errors have no common base
                raise self._load_error(error) from error
            self._processes = [process for process in _children() if process not in others]
        return self._llm

    def _load_error(self, error: Exception) -> EngineError:
        model = f"{WHAT} {self._config.model!r}"
        if "architectures" in str(error):
            family = self._encoder.model_config.model_type
            return EngineError(f"vLLM does not serve models of type {family}, as {model} is. Use transformers_cpu.")
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # pydantic's first line only counts its errors.
        reason = lines[1] if isinstance(error, ValueError) and len(lines) > 1 else (lines or [type(error).__name__])[0]
        return EngineError(
            f"vLLM can't load {model} ({reason[:200]}). Its own messages say more; if it lacked memory, lower "
            "gpu_memory_share or free some, else check that engine transformers_cpu can load the model."
        )


def _settings(config: ClassifierConfig) -> dict[str, Any]:
    on_cpu = _library().platforms.current_platform.is_cpu()
    memory: dict[str, Any] = {}
    if config.gpu_memory_share is not None:
        memory = {"gpu_memory_utilization": config.gpu_memory_share}
    elif on_cpu:
        memory = {"kv_cache_memory_bytes": CPU_CACHE_BYTES}
    return {
        "runner": "pooling",
        "model_impl": "vllm",
        "skip_tokenizer_init": True,
        "dtype": config.dtype,
        "max_model_len": config.max_tokens,
        "max_num_batched_tokens": max(config.batch_tokens, config.max_tokens),
        "tensor_parallel_size": config.tensor_parallel,
        "trust_remote_code": config.trust_remote_code,
        "enforce_eager": on_cpu,  # compiling needs a C++ compiler there, and pays off on GPUs
        "use_tqdm_on_load": False,
        "worker_extension_cls": f"{_leash.__name__}.{_leash.Leash.__name__}",
        **memory,
    }


def _children() -> list[Any]:
    """Processes that descend from this one, but for the one that Python keeps to tidy up after the others."""
    import psutil  # noqa: PLC0415

    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may have ended meanwhile
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.append(process)
    return found


def _library() -> Any:  # noqa: ANN401
    try:
        import vllm  # noqa: PLC0415 - ten seconds, and optional
    except ModuleNotFoundError as error:
        raise EngineError(
            f"engine vllm_offline needs the package {error.name!r}. Run: pip install 'leadline[vllm]'"
        ) from error
    return vllm
