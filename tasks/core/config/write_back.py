"""The keys of `write_back`, in the settings of a source: which scores go back to the store that the traces are from."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from tasks.core.config.base import Settings, TraceScore


class WriteBack(Settings):
    """Which scores are written back, and how they are explained.

    Attributes:
        recipe: Name of the recipe whose scores are written; the config's first by default.
        scores: Scores of a trace; all by default. Those that the recipe's method does not have are left out.
        chunks: Whether each chunk of a trace gets a verdict too, in a store that takes verdicts on documents (Phoenix).
        explanations: `counts`: counts and ids of claims, without the text of a trace. `text`: the claims that are not
            supported as well.
        prefix: Begins the name of every score in the store.
    """

    recipe: Annotated[str, Field(min_length=1)] | None = None
    scores: tuple[TraceScore, ...] = get_args(TraceScore)
    chunks: bool = True
    explanations: Literal["counts", "text"] = "counts"
    prefix: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "leadline_"
