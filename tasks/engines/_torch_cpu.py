"""Texts through a torch model on the CPU. Imports torch at its top: engines import it on first use only.

Every row is padded to a length that its own token count decides, and only rows of equal padded length share a batch. So
no neighbor decides the shape of a batch, and a result depends on its own text alone, to the last bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from tasks.core.errors import EngineError

PAD_TO = 8  # tokens; wider wastes work on padding, narrower leaves small batches
Read = Callable[[Any, torch.Tensor], torch.Tensor]


def by_row(
    what: str,
    model: Callable[..., Any],
    inputs: Mapping[str, tuple[Sequence[Sequence[int]], int]],
    read: Read,
    max_tokens: int,
    batch_tokens: int,
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Number of each row, and what `read` makes of the model's output for it; shortest rows first.

    Args:
        what: What the model is, for messages.
        inputs: Arguments of the model by name, among them `input_ids`: rows of numbers, and the number that fills them.
        read: The model's output and the attention mask to the result, (rows, …).
        max_tokens: Longest row.
        batch_tokens: Padded tokens in one batch, unless one row alone has more.

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
        batch_tokens: Padded tokens in one batch, unless one row alone has more.
    """
    by_length: dict[int, list[int]] = {}
    for i, count in enumerate(counts):
        by_length.setdefault(min(-(-count // PAD_TO) * PAD_TO, max_tokens), []).append(i)
    for length, rows in sorted(by_length.items()):
        size = max(1, batch_tokens // length)
        for at in range(0, len(rows), size):
            yield length, rows[at : at + size]


def padded(rows: Sequence[Sequence[int]], length: int, fill: int) -> npt.NDArray[np.int64]:
    """Rows as one array, int64, (rows, length), with `fill` behind each."""
    table = np.full((len(rows), length), fill, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def use_threads(threads: int | None) -> None:
    """Set torch's CPU threads, process-wide; None leaves torch's choice."""
    if threads is not None:
        torch.set_num_threads(threads)


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
        remedy = "It has no number for a token or a place: check that the tokenizer is its own, or lower max_tokens."
        raise EngineError(f"{place} ({type(error).__name__}). {remedy}") from error
    except (RuntimeError, MemoryError) as error:
        raise EngineError(f"{place} ({type(error).__name__}). Lower batch_tokens or free memory.") from error
    return result


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
