"""Samples of Ragas: an `EvaluationDataset` as JSON lines, CSV, Parquet or a Hugging Face data set (`.arrow`).

Columns have the names of Ragas 0.2 and later, or of 0.1. Samples of conversations are rejected, because they contain no
passages.
"""

from pathlib import Path
from typing import Literal

from tasks.sources import Source
from tasks.sources.tabular import Columns, FilePaths, from_files
from tasks.sources.tabular.columns import Paths


class RagasColumns(Columns):
    """The columns of a sample."""

    question: Paths = ("user_input", "question")
    answer: Paths = ("response", "answer")
    chunks: Paths | None = ("retrieved_contexts", "contexts")
    chunk_ids: Paths | None = ("retrieved_context_ids",)
    reference_answer: Paths | None = ("reference", "ground_truth")
    gold_chunk_ids: Paths | None = ("reference_context_ids",)


class Config(FilePaths):
    """Settings of a `ragas` source; see `FilePaths` and `Tabular` for the common ones.

    Attributes:
        columns: More columns, such as one with the time.
    """

    kind: Literal["ragas"]
    columns: RagasColumns = RagasColumns()


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory."""
    return from_files(config, base)
