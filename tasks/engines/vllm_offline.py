"""Pair classification by vLLM, offline: on GPUs, and on the CPU where vLLM is built for it.

Numbers differ in their last bits with the batch that a pair happens to share: what needs equal numbers keeps them, as
the verdict store does.

Left out: token types other than zero, and models that vLLM knows only through transformers. Needs the extra `vllm`,
which is imported on first use.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tasks.core.errors import EngineError
from tasks.engines.classifier import Classified, softmax
from tasks.engines.shared import vllm_host
from tasks.engines.shared.classifiers import WHAT, ClassifierConfig
from tasks.engines.shared.encoder import Encoder, FromEncoder


class VllmClassifier(FromEncoder):
    """A classifier that vLLM runs (see `classifier.Classifier`)."""

    def __init__(self, config: ClassifierConfig, encoder: Encoder | None = None) -> None:
        super().__init__(config, encoder)
        self._host = vllm_host.Host()

    def classify(self, pairs: Sequence[tuple[str, str]]) -> Classified:
        """Probabilities of (premise, hypothesis) pairs, in their order.

        Raises:
            EngineError: The model can't be loaded or fails to run, or a hypothesis leaves no room for a premise.
        """
        logits, tokens = self.logits(pairs)
        for i, row in enumerate(logits):
            logits[i] = softmax(row)
        return Classified(logits, tokens)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Of each class, (pairs, classes), and the tokens that were read of each pair, (pairs,).

        Raises:
            EngineError: See `classify`.
        """
        ids = self._encoder.ids(pairs)
        found = np.zeros((len(pairs), self._encoder.model_config.num_labels))
        if ids:
            for i, row in enumerate(self._run(ids)):
                found[i] = row
        return found, np.array([len(tokens) for tokens in ids], dtype=np.int64)

    def close(self) -> None:
        """End vLLM's processes, and with them what they hold of memory; a later call loads the model again."""
        self._host.close()

    def _run(self, ids: Sequence[Sequence[int]]) -> Iterator[npt.NDArray[np.float64]]:
        """Logits (classes,) of each pair's token ids: the softmax is that of the other engines, and applied once."""
        llm = self._load()
        prompts = [{"prompt_token_ids": tokens} for tokens in ids]
        parameters = vllm_host.library().PoolingParams(use_activation=False)
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
        if self._host.llm is None:
            # To vLLM a model of one class is a cross-encoder, and it makes ready to put pairs together by itself.
            skip = self._encoder.model_config.num_labels > 1
            settings = {**_settings(self._config), "skip_tokenizer_init": skip}
            try:
                self._host.start(self._config, WHAT, settings)
            except EngineError:
                raise
            except Exception as error:  # vLLM's errors have no common base
                raise self._load_error(error) from error
        return self._host.llm

    def _load_error(self, error: Exception) -> EngineError:
        model = f"{WHAT} {self._config.model!r}"
        if "architectures" in str(error):
            family = self._encoder.model_config.model_type
            return EngineError(f"vLLM does not serve models of type {family}, as {model} is. Use transformers_cpu.")
        return EngineError(
            f"vLLM can't load {model} ({vllm_host.reason(error)}). Its own messages say more; if it lacked memory, "
            "lower gpu_memory_share or free some, else check that engine transformers_cpu can load the model."
        )


def _settings(config: ClassifierConfig) -> dict[str, Any]:
    return {
        **vllm_host.settings(
            dtype=config.dtype,
            max_tokens=config.max_tokens,
            tensor_parallel=config.tensor_parallel,
            gpu_memory_share=config.gpu_memory_share,
            trust_remote_code=config.trust_remote_code,
        ),
        "runner": "pooling",
        "model_impl": "vllm",
        "max_num_batched_tokens": max(config.batch_tokens, config.max_tokens),
    }
