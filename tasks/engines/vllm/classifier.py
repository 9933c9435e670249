"""The engine `vllm_offline` for classifiers: on GPUs, and on the CPU with a vLLM built for it.

The last bits of a result depend on the other pairs in the batch. Code that needs equal numbers must store them, as the
verdict store does.

Left out: token types other than zero, and models that vLLM supports only through transformers. Needs the extra `vllm`,
which is imported on first use.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.engines._classifiers import WHAT, ClassifierConfig
from tasks.engines._encoder import Encoder
from tasks.engines.classifier import Classifier
from tasks.engines.vllm import _host


class VllmClassifier(Classifier):
    """A classifier that vLLM runs."""

    def __init__(self, config: ClassifierConfig, encoder: Encoder | None = None) -> None:
        super().__init__(config, encoder)
        memory = "lower batch_tokens or gpu_memory_share, or free some"
        self._host = _host.Host(config, WHAT, memory, "engine transformers_cpu")

    def logits(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """See `Classifier`."""
        ids = self._encoder.ids(pairs)
        classes = self._encoder.model_config.num_labels
        if not ids:
            return np.zeros((0, classes)), np.zeros(0, np.int64)
        if self._host.llm is None:
            self._host.load(
                {},
                runner="pooling",
                model_impl="vllm",
                max_num_batched_tokens=max(self._config.batch_tokens, self._config.max_tokens),
                # vLLM treats a model with one class as a cross-encoder, for which it would combine the pairs itself.
                skip_tokenizer_init=classes > 1,
            )
        prompts = [{"prompt_token_ids": tokens} for tokens in ids]
        # Request logits, so that the softmax is the same as in other engines and is applied once.
        options = {"pooling_params": _host.library().PoolingParams(use_activation=False), "use_tqdm": False}
        outputs = self._host.run(lambda llm: llm.classify(prompts, **options), f"{len(ids)} pairs")
        found = np.array([output.outputs.probs for output in outputs], dtype=np.float64)
        return found, np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def close(self) -> None:
        """End vLLM's processes, which frees their memory; a later call loads the model again."""
        self._host.close()
