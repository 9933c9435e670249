"""The models that break sentences into facts, one of each for all extractors of a config file."""

from collections.abc import Sequence
from pathlib import Path

from tasks.judges import generate
from tasks.judges.generate import Writer


class Writers:
    """Writers by their files: applications that differ in their citation style alone share a model.

    Args:
        where: The config file that names them; their paths are relative to it.
    """

    def __init__(self, where: str) -> None:
        self._folder = Path(where).resolve().parent
        self._open: dict[Path, Writer] = {}

    def open(self, path: Path, gives: Sequence[str]) -> Writer:
        """The writer of a file, whose prompt is given these inputs; its model is not loaded before the first call.

        Raises:
            ConfigError: The file or one of its keys is wrong.
        """
        at = (self._folder / path.expanduser()).resolve()
        if at not in self._open:
            self._open[at] = generate.load(at, gives)
        return self._open[at]
