"""Results of RAGChecker: the JSON that it checks, or that it writes.

Ids of queries are numbers in most files, the same in each: a trace's id is that of its query and a hash.
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
    """Settings of a `ragchecker` source; see `FilePaths` and `Tabular` for those that it shares.

    Attributes:
        columns: Further keys, such as one with the time.
    """

    unique_ids: ClassVar[bool] = False

    kind: Literal["ragchecker"]
    columns: RagcheckerColumns = RagcheckerColumns()
    chunk: ChunkPaths = ChunkPaths(id=("doc_id",))


def build(config: Config, base: Path) -> Source:
    """The source that the settings describe; `base` is the config file's directory."""
    return from_files(config, base, "results")
