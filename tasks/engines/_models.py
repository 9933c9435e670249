"""Settings that name a model, hashes of its files, and errors about missing files.

Every engine that loads a model uses this module. Left out: loading, which each engine does itself.
"""

import hashlib
import importlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tasks.core.config import Settings
from tasks.core.errors import EngineError

PACKAGE = "package:"
HASHED_FILES = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "vocab.txt")
# These families number positions from the padding token's id + 1, and so read fewer tokens than they declare.
OFFSET_POSITIONS = ("camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta", "xlm-roberta", "xmod")


class ModelConfig(Settings):
    """Settings that name a model.

    Attributes:
        model: `package:NAME` (an installed package with `get_model_path()`), a folder (`/…`, `./…`, `../…`, `~/…`),
            or a model's name on the Hugging Face hub, which needs `revision`.
        revision: Commit hash of a hub model.
    """

    model: str
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None

    @property
    def on_hub(self) -> bool:
        """Whether `model` names a model on the hub, not files on this machine."""
        return not self.model.startswith((PACKAGE, "/", "./", "../", "~"))

    def relative_to(self, folder: Path) -> Self:
        """The same settings with an absolute model folder: paths in a config file are relative to `folder`."""
        if not self.model.startswith(("./", "../")):
            return self
        return self.model_copy(update={"model": str((folder / self.model).resolve())})

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if self.on_hub and self.revision is None:
            raise ValueError(
                f"names the hub model {self.model!r} without a revision; pin a commit hash of 40 hexadecimal digits "
                "(results can't be reproduced without one), or write a folder as './folder'"
            )
        return self


def identity(config: ModelConfig, what: str, patterns: Sequence[str] = HASHED_FILES) -> dict[str, object]:
    """The model's part of a version: hashes of its files, not their path.

    Args:
        what: The kind of model, for messages: "embedding model", "classifier".
        patterns: Names of the files that can change the model's results.

    Raises:
        EngineError: The model's files are missing.
    """
    if config.on_hub:
        return {"model": config.model, "weights": {"hub": config.model, "revision": config.revision}}
    name = config.model.removeprefix(PACKAGE) if config.model.startswith(PACKAGE) else "local"
    return {"model": name, "weights": file_hashes(folder(config.model, what), patterns)}


def source(config: ModelConfig, what: str) -> tuple[str, dict[str, Any]]:
    """First argument and options of `from_pretrained`. A local model is never looked up on the hub.

    Raises:
        EngineError: The model's folder does not exist.
    """
    if config.on_hub:
        return config.model, {"revision": config.revision}
    return str(folder(config.model, what)), {"local_files_only": True}


def gpus_held(wanted: int) -> int:
    """GPUs that a model uses if vLLM splits it across `wanted` of them: 0 if this machine has no GPU."""
    import torch  # noqa: PLC0415 - takes seconds, which is too long for reading a config

    return wanted if torch.cuda.is_available() else 0


def transformers() -> Any:  # noqa: ANN401 - the library has no types
    """Import transformers on first use: with torch it takes seconds, which most commands can avoid."""
    # Idle threads sleep. torch's default, spinning, takes cores of a shared machine from working threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    library = importlib.import_module("transformers")
    library.utils.logging.disable_progress_bar()
    return library


def folder(model: str, what: str) -> Path:
    """The folder with a local model's files.

    Raises:
        EngineError: The folder or package does not exist.
    """
    if not model.startswith(PACKAGE):
        path = Path(model).expanduser()
        if not path.is_dir():
            raise EngineError(f"{what} {model!r} is not a folder. Check the path.")
        return path
    name = model.removeprefix(PACKAGE)
    try:
        return Path(importlib.import_module(name).get_model_path())
    except ImportError as error:
        raise EngineError(
            f"the package {name!r} is not installed. Run: pip install {name.replace('_', '-')}"
        ) from error
    except AttributeError as error:
        raise EngineError(f"the package {name!r} contains no model: it has no get_model_path().") from error


def file_hashes(path: Path, patterns: Sequence[str] = HASHED_FILES) -> dict[str, str]:
    """SHA-256 of the files that can change results (0.1 s for 90 MB; the hub shows the same hash for the weights).

    Raises:
        EngineError: There are no such files.
    """
    hashes = {}
    for found in sorted({file for pattern in patterns for file in path.glob(pattern)}):
        stat = found.stat()
        hashes[found.name] = _sha256(found, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if not hashes:
        raise EngineError(f"{path} holds no model files. Give a folder with config.json and model.safetensors.")
    return hashes


@lru_cache(maxsize=256)
def _sha256(path: Path, *_state: int) -> str:
    """Hash of a file. The file is read again only if its state has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason(error: Exception) -> str:
    """The first line of a library's error, at most 200 characters; the class name if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def load_error(config: ModelConfig, what: str, error: Exception) -> EngineError:
    """The error to raise for any error of the libraries."""
    remedy = (
        "Check the name and the revision and that the hub can be reached, or give a folder or 'package:NAME'."
        if config.on_hub
        else "Give a folder with config.json, model.safetensors and tokenizer.json."
    )
    return EngineError(f"{what} {config.model!r} can't be loaded ({reason(error)}). {remedy}")


def check_positions(config: ModelConfig, what: str, model_config: Any, max_tokens: int) -> None:  # noqa: ANN401
    """Refuse a `max_tokens` above the model's limit.

    Args:
        model_config: The model's transformers configuration.

    Raises:
        EngineError: The model has fewer positions than `max_tokens`.
    """
    limit = getattr(model_config, "max_position_embeddings", None)
    if limit is not None and model_config.model_type in OFFSET_POSITIONS:
        limit -= model_config.pad_token_id + 1
    if limit is not None and limit < max_tokens:
        raise EngineError(f"{what} {config.model!r} reads {limit} tokens, max_tokens is {max_tokens}. Lower it.")
