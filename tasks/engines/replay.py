"""The engine that runs nothing: it recalls what was recorded by key, and writes down what it was asked.

For tests and for measuring the pipeline around a model. What the recorded lines mean is for judges to say.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tasks.core import keys
from tasks.core.errors import EngineError

R = TypeVar("R")


class Replay(Generic[R]):
    """Recorded replies of type `R`, by the key that each one carries.

    Args:
        record: Type of one reply; it must have a `key`.
        records: JSONL file of replies; a key's last line counts. None recalls nothing.
        log: File that gets a line with the key of everything asked, for counting what was paid for. None writes none.
    """

    def __init__(self, record: type[R], records: Path | None = None, log: Path | None = None) -> None:
        self._log = log
        data = _read(records) if records else b""
        self.version = keys.key(data) if records else None
        decoder = msgspec.json.Decoder(record)
        self._replies: dict[str, R] = {}
        for number, line in enumerate(data.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                reply = decoder.decode(line)
            except msgspec.DecodeError as error:
                remedy = f"Write one {record.__name__} as JSON a line."
                raise EngineError(f"{records}: line {number} is no recorded reply ({error}). {remedy}") from None
            self._replies[reply.key] = reply  # type: ignore[attr-defined]

    def ask(self, asked: Iterable[str]) -> list[R | None]:
        """What was recorded for each key, in order; None where nothing was. All keys are logged before any reply.

        Raises:
            EngineError: The log can't be written.
        """
        found = list(asked)
        if self._log is not None and found:
            self._append("".join(f"{key}\n" for key in found))
        return [self._replies.get(key) for key in found]

    def _append(self, lines: str) -> None:
        """One write to a file opened for appending: lines of several processes never mix."""
        assert self._log is not None  # noqa: S101 - for the type checker
        try:
            file = os.open(self._log, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
            try:
                os.write(file, lines.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise EngineError(f"{self._log}: the log can't be written ({error.strerror}). Check the folder.") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path}: recorded replies can't be read ({error.strerror}). Check the path.") from error
