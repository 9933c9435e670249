"""Judges a shard of requests, in this process or in a worker, and stores its verdicts once.

The name of a shard's part is a hash of its request keys. So a worker that takes over a shard finds the verdicts of a
dead worker, and two workers that judge the same shard store it once.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tasks.core import keys
from tasks.core.errors import ChangedError
from tasks.core.schemas import TRACES, VERDICTS
from tasks.core.types import LABELS, Request, Verdict
from tasks.run.cascade import CascadeJudge
from tasks.run.part_work import check_lake
from tasks.run.result import TOKENS, StageResult
from tasks.run.work import answered, worked
from tasks.store.lake import Lake


@dataclass(frozen=True, slots=True)
class JudgeWork:
    """See `tasks.executors.Work`.

    Attributes:
        stage: Name of the stage.
        part: Name of the requests' part of `traces`.
        day: Day of that part.
        sample: Number of the judge's sample.
        attempt: Distinguishes a repeated try, after failures, from the first one.
    """

    stage: str
    lake: Lake
    judge: CascadeJudge
    part: str
    day: str
    sample: int = 0
    attempt: str = ""

    @property
    def gpus(self) -> int:
        """See `Work`."""
        return self.judge.gpus

    def check(self) -> None:
        """Raise EngineError if the lake lacks the part of `traces`: its folder is local to this machine."""
        check_lake(self.lake, found=self.lake.find(TRACES, self.part, self.day) is not None)

    def stored(self, shard: list[Request]) -> StageResult | None:
        """See `Work`."""
        self.lake.storage.refresh()  # another worker may just have stored it
        part = self.lake.find(VERDICTS, self._name(shard), self.judge.version, self.day)
        if part is None:
            return None
        rows = part.frame([*TOKENS])
        tokens: dict[str, Any] = {name: int(rows[name].sum()) for name in TOKENS}
        return StageResult(self.stage, rows.height, lost=len(shard) - rows.height, **tokens)

    def __call__(self, shard: list[Request]) -> StageResult:
        """See `Work`."""
        return self._store(shard, self.judge.judge.judge(shard))

    def set_aside(self, shard: list[Request], failure: str) -> StageResult:
        """See `Work`."""
        note = f"{len(shard):,} requests are stored as failures ({failure}). Judge them again with --retry-failures."
        return replace(self._store(shard, [Verdict(r.key, failure=failure) for r in shard]), notes=(note,))

    def _name(self, shard: Sequence[Request]) -> str:
        return f"{self.part}-{keys.key(self.sample, self.attempt, *(request.key for request in shard))}"

    def _store(self, shard: list[Request], given: Sequence[Verdict]) -> StageResult:
        verdicts = [_checked(request, verdict) for request, verdict in answered(shard, given)]
        if verdicts:
            fields = ("label", "failure", "p_supported", "p_contradicted", "passages", "explanation", "raw", *TOKENS)
            columns = {
                "request_key": [v.key for v in verdicts],
                "sample": [self.sample] * len(verdicts),
                "engine": [self.judge.judge.engine] * len(verdicts),
                "created_at": [datetime.now(UTC)] * len(verdicts),
                **{name: [getattr(v, name) for v in verdicts] for name in fields},
            }
            rows = pa.Table.from_pydict(columns, VERDICTS.stored)
            with suppress(ChangedError):
                self.lake.write(VERDICTS, self._name(shard), rows, self.judge.version, self.day, once=True)
        return worked(self.stage, given, len(verdicts))


def _checked(request: Request, verdict: Verdict) -> Verdict:
    """The verdict, or a failure if it is invalid.

    A verdict needs either a known label or a failure, and may only name passages that were shown.
    """
    shown = all(1 <= n <= len(request.shown) for n in verdict.passages)
    if shown and (verdict.label in LABELS) != (verdict.failure is not None):
        return verdict
    raw = verdict.raw or str(verdict.label)
    return replace(verdict, label=None, failure="invalid_verdict", passages=(), raw=raw)
