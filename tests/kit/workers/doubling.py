"""Work for workers that are other processes: numbers, some of which end the process that is given them."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tasks.core.errors import EngineError

BEFORE, AFTER = "before", "after"  # what the worker dies: before or after it has stored the shard


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers, and writes each begun shard to a log.

    Attributes:
        folder: Of the log and the results.
        deadly: When a shard with this number ends its worker, and how often.
        broken: A shard with this number is an error.
    """

    folder: Path
    deadly: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    broken: int | None = None
    gpus: int = 0
    missing: str | None = None

    def check(self) -> None:
        if self.missing:
            raise EngineError(self.missing)

    def stored(self, shard: list[int]) -> str | None:
        path = self._path(shard)
        return path.read_text() if path.exists() else None

    def __call__(self, shard: list[int]) -> str:
        log = os.open(self.folder / "log", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(log, f"{shard[0]}\n".encode())
        os.close(log)
        if self.broken in shard:
            raise EngineError("the model is down. Start it.")
        moment, times = next((self.deadly[n] for n in shard if n in self.deadly), ("", 0))
        dies = self.begun().count(shard[0]) <= times
        if dies and moment == BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        result = json.dumps([2 * n for n in shard])
        self._path(shard).write_text(result)
        if dies and moment == AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def set_aside(self, shard: list[int], failure: str) -> str:
        return failure

    def begun(self) -> list[int]:
        """The first number of every shard that a worker began, as often as one did."""
        log = self.folder / "log"
        return list(map(int, log.read_text().split())) if log.exists() else []

    def _path(self, shard: list[int]) -> Path:
        return self.folder / f"{shard[0]}.json"
