"""Traces from the input or output files of RAGChecker (JSON).

Most files number their queries, so query ids repeat across files. A trace's id is the query's id and a hash.
"""

from pathlib import Path
from typing import ClassVar, Literal

from tasks.sources import Source
from tasks.sources.tabular import Columns, FilePaths, from_files
from tasks.sources.tabular.columns import ChunkPaths, Paths


class RagcheckerColumns(Columns):
    """The keys of a result."""

    id: Paths | None = ("query_id",)
    question: Paths = ("query",)
    answer: Paths = ("response",)
    chunks: Paths | None = ("retrieved_context",)
    reference_answer: Paths | None = ("gt_answer",)


class Config(FilePaths):
    """Settings of a `ragchecker` source; see `FilePaths` and `Tabular` for the common ones.

    Attributes:
        columns: More keys, such as one with the time.
    """

    unique_ids: ClassVar[bool] = False

    kind: Literal["ragchecker"]
    columns: RagcheckerColumns = RagcheckerColumns()
    chunk: ChunkPaths = ChunkPaths(id=("doc_id",))


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory."""
    return from_files(config, base, "results")
