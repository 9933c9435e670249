"""Runs texts through a torch model on the CPU. It imports torch, so engines import this module on first use only.

A row's own token count decides its padded length, and only rows of equal padded length share a batch. So a result
depends on its own text only, to the last bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from tasks.core.errors import EngineError

PAD_TO = 8  # tokens; a larger step wastes work on padding, a smaller one gives small batches
Read = Callable[[Any, torch.Tensor], torch.Tensor]


def by_row(
    what: str,
    model: Callable[..., Any],
    inputs: Mapping[str, tuple[Sequence[Sequence[int]], int]],
    read: Read,
    max_tokens: int,
    batch_tokens: int,
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Run rows through the model, shortest first; yields each row's number and the result that `read` returns for it.

    Args:
        what: The kind of model, for messages.
        inputs: The model's arguments by name, with `input_ids`: rows of numbers, and the number that pads them.
        read: Turns the model's output and the attention mask into the result, (rows, …).
        max_tokens: Length of the longest row.
        batch_tokens: Maximum padded tokens in one batch, except for a single longer row.

    Raises:
        EngineError: The model failed on a batch.
    """
    counts = [len(row) for row in inputs["input_ids"][0]]
    for length, rows in batches(counts, max_tokens, batch_tokens):
        tables = {name: padded([table[i] for i in rows], length, fill) for name, (table, fill) in inputs.items()}
        tables["attention_mask"] = padded([[1] * counts[i] for i in rows], length, 0)
        yield from zip(rows, _run(what, model, tables, read), strict=True)


def batches(counts: Sequence[int], max_tokens: int, batch_tokens: int) -> Iterator[tuple[int, list[int]]]:
    """Padded length and row numbers of each batch, shortest first.

    Args:
        counts: Tokens of each row, at most `max_tokens`.
        batch_tokens: Maximum padded tokens in one batch, except for a single longer row.
    """
    by_length: dict[int, list[int]] = {}
    for i, count in enumerate(counts):
        by_length.setdefault(min(-(-count // PAD_TO) * PAD_TO, max_tokens), []).append(i)
    for length, rows in sorted(by_length.items()):
        size = max(1, batch_tokens // length)
        for at in range(0, len(rows), size):
            yield length, rows[at : at + size]


def padded(rows: Sequence[Sequence[int]], length: int, fill: int) -> npt.NDArray[np.int64]:
    """Rows as one array, int64, (rows, length), padded with `fill` at the end."""
    table = np.full((len(rows), length), fill, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def use_threads(threads: int | None) -> None:
    """Set torch's CPU threads, process-wide; None keeps torch's default."""
    if threads is not None:
        torch.set_num_threads(threads)


def pooled(output: Any, attend: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """Mean over the attended tokens, scaled to length 1: float32, (rows, dimensions)."""
    states = output.last_hidden_state
    weights = attend.unsqueeze(-1).to(states.dtype)
    means = (states * weights).sum(dim=1) / weights.sum(dim=1)
    return torch.nn.functional.normalize(means, dim=1)


def logits(output: Any, _attend: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """Logits of each class, float64, (rows, classes)."""
    found: torch.Tensor = output.logits.double()
    return found


def _run(
    what: str, model: Callable[..., Any], inputs: Mapping[str, npt.NDArray[np.int64]], read: Read
) -> npt.NDArray[Any]:
    tensors = {name: torch.from_numpy(table) for name, table in inputs.items()}
    rows, length = inputs["attention_mask"].shape
    place = f"the {what} failed on {rows} texts of {length} tokens"
    try:
        with torch.inference_mode(), _RowByRow(rows):
            result: npt.NDArray[Any] = read(model(**tensors), tensors["attention_mask"]).numpy()
    except IndexError as error:
        remedy = "A token id or position is out of range: check that the tokenizer is the model's, or lower max_tokens."
        raise EngineError(f"{place} ({type(error).__name__}). {remedy}") from error
    except (RuntimeError, MemoryError) as error:
        raise EngineError(f"{place} ({type(error).__name__}). Lower batch_tokens or free memory.") from error
    return result


class _RowByRow(TorchFunctionMode):
    """Computes each row of a classification head separately.

    torch uses different kernels for a matrix of one row and of several, with different last bits. Matrices with one row
    for each token have no such problem, because each text has several.
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
