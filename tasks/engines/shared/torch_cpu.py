"""One batch through a torch model on the CPU. Imports torch at its top: engines import it on first use only."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from tasks.core.errors import EngineError


def run(
    what: str,
    model: Callable[..., Any],
    inputs: Mapping[str, npt.NDArray[np.int64]],
    read: Callable[[Any, torch.Tensor], torch.Tensor],
) -> npt.NDArray[Any]:
    """What `read` makes of a model's output for one batch, (rows, …): the same whatever rows are in it.

    Args:
        what: What the model is, for messages.
        inputs: Arguments of the model, each (rows, length); one is `attention_mask`.
        read: The model's output and the attention mask to the result.

    Raises:
        EngineError: The model failed on the batch.
    """
    tensors = {name: torch.from_numpy(table) for name, table in inputs.items()}
    rows, length = inputs["attention_mask"].shape
    place = f"the {what} failed on {rows} texts of {length} tokens"
    try:
        with torch.inference_mode(), _RowByRow(rows):
            result: npt.NDArray[Any] = read(model(**tensors), tensors["attention_mask"]).numpy()
    except IndexError as error:
        remedy = "It has no number for a token or a place: check that the tokenizer is its own, or lower max_tokens."
        raise EngineError(f"{place} ({type(error).__name__}). {remedy}") from error
    except (RuntimeError, MemoryError) as error:
        raise EngineError(f"{place} ({type(error).__name__}). Lower batch_tokens or free memory.") from error
    return result


def pooled(output: Any, attend: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """Mean over the tokens that count, scaled to length 1: float32, (rows, dimensions)."""
    states = output.last_hidden_state
    weights = attend.unsqueeze(-1).to(states.dtype)
    means = (states * weights).sum(dim=1) / weights.sum(dim=1)
    return torch.nn.functional.normalize(means, dim=1)


def logits(output: Any, _attend: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """Of each class, float64, (rows, classes)."""
    found: torch.Tensor = output.logits.double()
    return found


class _RowByRow(TorchFunctionMode):
    """Computes each row of a classification head by itself.

    A matrix of one row goes through another kernel than one of several, and the last bits come out different. Where
    a matrix has a row per token, several of each text, that does not happen.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 - torch's own signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear and args[0].dim() == 2 and len(args[0]) == self._rows:
            return torch.cat([func(row, *args[1:], **kwargs) for row in args[0].split(1)])
        return func(*args, **kwargs)
