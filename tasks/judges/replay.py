"""The judge `replay`: runs no model. A verdict is a pure function of the request's key, or is read from a file.

Use it in tests, and to measure the pipeline without a model. Its verdicts mean nothing: never put them on a dashboard.
"""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec
from pydantic import Field, model_validator

from tasks.core import keys
from tasks.core.config import Settings, Share
from tasks.core.errors import EngineError
from tasks.core.types import LABELS, Request, Verdict
from tasks.judges._base import JudgeConfig

RULES = 2  # raised when the same key draws a different outcome
DIGITS = 12  # hexadecimal digits for one number in [0, 1)


class Shares(Settings):
    """Probability of each outcome. They sum to 1."""

    supported: Share = 0.7
    partially_supported: Share = 0.1
    unsupported: Share = 0.15
    contradicted: Share = 0.05
    abstained: Share = 0.0
    failure: Share = 0.0

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not math.isclose(total := sum(self.model_dump().values()), 1, abs_tol=1e-9):
            raise ValueError(f"has shares that add up to {total:g}; make them add up to 1, those left out included")
        return self


class Config(JudgeConfig):
    """The settings in a replay judge's file. Paths are relative to the file.

    Attributes:
        shares: Probability of each outcome for keys without a recorded verdict.
        seed: A different seed draws different outcomes for the same keys.
        records: JSONL file of recorded verdicts (`{"key": …, "label": …, …}`), which replace drawn ones.
        log: File that gets one line for each judged request.
    """

    kind: Literal["replay"] = "replay"
    shares: Shares = Shares()
    seed: Annotated[int, Field(ge=0)] = 0
    records: Path | None = None
    log: Path | None = None


class ReplayJudge(keys.Versioned):
    """See the module."""

    engine = "replay"
    gpus = 0

    def __init__(self, config: Config, folder: Path) -> None:
        self._config, self.languages = config, config.languages
        records, self._log = (path and folder / path.expanduser() for path in (config.records, config.log))
        data = _read(records) if records else b""
        self._records_version = keys.key(data) if records else None
        self._recorded = {verdict.key: verdict for verdict in _decoded(data, records)}

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict; not the paths of `records` and `log`."""
        drawn = self._config.model_dump(mode="json", include={"shares", "seed"})
        return {"kind": "replay", "rules": RULES, "records": self._records_version, **drawn}

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in order. All keys are logged before the first verdict.

        Raises:
            EngineError: The log can't be written.
        """
        if self._log is not None and requests:
            _append(self._log, "".join(f"{request.key}\n" for request in requests))
        return [self._recorded.get(request.key) or self._draw(request) for request in requests]

    def close(self) -> None:
        """Do nothing: there is no model to free."""

    def _draw(self, request: Request) -> Verdict:
        digest = keys.key(self._config.seed, request.key)
        where, depth = (int(digest[at : at + DIGITS], 16) / 16**DIGITS for at in (0, DIGITS))
        tokens = (len(request.premise) + len(request.hypothesis)) // 4
        outcome = self._outcome(where)
        if outcome == "failure":
            return Verdict(request.key, failure="unparsable", raw="", tokens_in=tokens)
        label = next(label for label in LABELS if label == outcome)
        p = round(0.5 + depth / 2 if label == "supported" else depth / 2, 4)
        against = round(1 - p if label == "contradicted" else (1 - p) / 2, 4)
        passages = () if label in ("unsupported", "abstained") else _named(digest, len(request.shown))
        return Verdict(request.key, label, p_supported=p, p_contradicted=against, passages=passages, tokens_in=tokens)

    def _outcome(self, where: float) -> str:
        """The outcome whose interval of [0, 1) contains `where`."""
        shares = {name: share for name, share in self._config.shares.model_dump().items() if share > 0}
        edge = 0.0
        for name, share in shares.items():
            edge += share
            if where < edge:
                return name
        return name  # the last edge may be just below 1 due to rounding


def _named(digest: str, shown: int) -> tuple[int, ...]:
    """One or two of several passages, as if they decided the label; none if only one was shown."""
    if shown == 1:
        return ()
    second, first = divmod(int(digest[2 * DIGITS :], 16), shown)
    both = (first + 1, (first + 1) % shown + 1)
    return both if second % 2 else both[:1]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path}: recorded verdicts can't be read ({error.strerror}). Check the path.") from error


def _decoded(data: bytes, path: Path | None) -> Iterator[Verdict]:
    """The recorded verdicts in order. The last line of a key counts."""
    decoder = msgspec.json.Decoder(Verdict)
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                problem = f"{path}: line {number} is no recorded verdict ({error})"
                raise EngineError(f"{problem}. Write one Verdict as JSON a line.") from None


def _append(path: Path, lines: str) -> None:
    """Append with a single write, so that lines of several processes never mix."""
    try:
        file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            os.write(file, lines.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise EngineError(f"{path}: the log can't be written ({error.strerror}). Check the folder.") from error


def build(config: Config, where: str) -> ReplayJudge:
    """The judge. Paths are relative to the config file `where`."""
    return ReplayJudge(config, Path(where).parent)
