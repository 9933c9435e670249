"""The engine `onnx_cpu`: classifiers through ONNX Runtime, in float32 or, at several times torch's speed, in int8.

Each pair runs alone and unpadded on one thread; as many threads run as there are cores. So a pair's probabilities
depend on that pair only, to the last bit: int8 scales activations over the whole tensor, and in a batch that would
include other pairs. Batches would be no faster, because a pair of 160 tokens fills a core.

The graph is made on first use and cached. If `model.int8.onnx`, made by `write_graph`, lies beside the weights, it is
used instead. Left out: the limits of `_graph`, clearing the cache (which can be deleted at any time), and GPUs. Needs
the extra `onnx`; onnxruntime, torch and transformers are imported on first use.
"""

import contextlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasks.core import keys
from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._classifiers import WHAT, ClassifierConfig
from tasks.engines._encoder import Encoder
from tasks.engines.classifier import Classifier
from tasks.engines.onnx import _graph

CACHE_VARIABLE = "LEADLINE_CACHE"
READY = "model.int8.onnx"
VERSIONED = ("torch", "transformers", "onnx", "onnxscript", "onnxruntime")


class OnnxClassifier(Classifier):
    """A classifier on this machine's CPU, loaded on first use."""

    def __init__(self, config: ClassifierConfig, encoder: Encoder | None = None) -> None:
        super().__init__(config, encoder)
        self._session: Any = None

    def describe(self) -> dict[str, object]:
        """Everything that can change a pair's probabilities. In float32 it is the same as for other engines."""
        described = self._encoder.describe()
        return described | {"quantization": _quantization(self._config)} if self._config.dtype == "int8" else described

    def logits(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """See `Classifier`."""
        ids = self._encoder.ids(pairs)
        found = np.empty((len(pairs), self._encoder.model_config.num_labels))
        if ids:
            session = self._load()
            with ThreadPoolExecutor(self._config.threads or _cores()) as threads:
                for i, row in enumerate(threads.map(lambda tokens: _graph.run(session, tokens), ids)):
                    found[i] = row
        return found, np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._session = None

    def _load(self) -> Any:  # noqa: ANN401
        if self._session is None:
            ready = _ready(self._config)
            self._session = _open_ready(self._config, ready) if ready else _open_cached(self._config, self._encoder)
        return self._session


def write_graph(config: ClassifierConfig, path: Path) -> None:
    """Write the graph of a config's model and dtype (float32 or int8).

    Stored as `model.int8.onnx` beside the weights, it saves users the export and the packages for it.

    Raises:
        EngineError: The model can't be loaded or exported, a package is missing, or the file can't be written.
    """
    try:
        _graph.write(config, Encoder(config), path)
    except OSError as error:
        raise EngineError(
            f"the graph of {WHAT} {config.model!r} can't be written to {path} ({error.strerror}). Name another place."
        ) from error


def _open_cached(config: ClassifierConfig, encoder: Encoder) -> Any:  # noqa: ANN401
    """The session of the cached graph, which is made if it is missing or broken."""
    _graph.package("onnxruntime")
    path = _cached(config)
    if path.is_file():
        with contextlib.suppress(Exception):  # onnxruntime's errors have no common base
            return _graph.session(path)
    try:
        _graph.write(config, encoder, path)
    except OSError as error:
        raise EngineError(
            f"the graph of {WHAT} {config.model!r} can't be kept in {path.parent} ({error.strerror}). "
            f"Name another folder in {CACHE_VARIABLE}."
        ) from error
    return _open(path, "Free memory, or delete it.")


def _open_ready(config: ClassifierConfig, path: Path) -> Any:  # noqa: ANN401
    session = _open(path, "Delete it, and it is made anew.")
    if _graph.stamped(session) != _graph.stamp(config):
        raise EngineError(f"{path} was not made from the weights beside it. Delete it, and it is made anew.")
    return session


def _open(path: Path, remedy: str) -> Any:  # noqa: ANN401
    try:
        return _graph.session(path)
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(f"{path} can't be loaded ({_graph.reason(error)}). {remedy}") from error


def _ready(config: ClassifierConfig) -> Path | None:
    """The int8 graph that came with the weights; None if there is none."""
    if config.dtype != "int8" or config.on_hub:
        return None
    path = _models.folder(config.model, WHAT) / READY
    return path if path.is_file() else None


def _quantization(config: ClassifierConfig) -> str:
    """How the weights were converted to int8; for a graph that came with the weights, its hash."""
    ready = _ready(config)
    return _graph.SCHEME if ready is None else f"{READY} {_models.file_hashes(ready.parent, (READY,))[READY]}"


def _cached(config: ClassifierConfig) -> Path:
    """Path of the cached graph. It contains a hash of everything that can change the graph."""
    try:
        versions = {name: metadata.version(name) for name in VERSIONED}
    except metadata.PackageNotFoundError as error:
        raise _graph.missing(error.name) from error
    parts = {
        "weights": _graph.weights(config),
        "dtype": config.dtype,
        "rules": _graph.RULES,
        "versions": versions,
    }
    own = os.environ.get(CACHE_VARIABLE)
    folder = Path(own).expanduser() if own else Path(_graph.package("platformdirs").user_cache_dir("leadline"))
    return folder / "onnx" / keys.version(parts) / "model.onnx"


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
