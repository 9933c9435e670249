"""Work on one part of `traces`, in this process or in a worker. A worker opens the recipe's models itself.

A step computes what a part lacks and stores it. A worker that takes over a part continues from the stored results.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic

from tasks.core.budget import Budget
from tasks.core.errors import EngineError
from tasks.core.progress import Silent
from tasks.executors import Job, R
from tasks.executors.local import Local
from tasks.run.build import reopened
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.result import StageResult
from tasks.run.work import work_loop
from tasks.store.lake import Lake, Part

LEFT = "A part of traces ended every worker and is left to the next run. Give workers more memory."


@dataclass(frozen=True, slots=True)
class PartWork(Generic[R]):
    """See `tasks.executors.Work`. A shard is one part.

    Attributes:
        step: Module-level function that does the work. It skips stored results.
        left: Result for a part that crashes every worker. The part is left unchanged for the next run.
        gpus: Number of GPUs that a model of the step uses.
    """

    ctx: Context
    step: Callable[[Context, Part], R]
    left: R
    gpus: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the context without models; the receiving process opens them, see `reopened`."""
        models = {"extractor": None, "embedder": None, "scorers": (), "grader": None}
        others = {"sources": (), "gates": None, "unusable": ()}
        fresh = {"progress": Silent(), "budget": Budget(), "executor": Local()}
        bare: dict[str, Any] = {**models, **others, **fresh}
        return _sent, (replace(self.ctx, **bare), self.step, self.left, self.gpus)

    def check(self) -> None:
        """See `Work`.

        Raises:
            EngineError: The lake has no traces here. This machine does not share the run's storage.
        """
        check_lake(self.ctx.lake, found=bool(trace_parts(self.ctx)))

    def stored(self, shard: list[Part]) -> R | None:  # noqa: ARG002 - the step looks for stored results
        """See `Work`."""
        self.ctx.lake.storage.refresh()  # another worker may have stored the result just now
        return None

    def __call__(self, shard: list[Part]) -> R:
        """See `Work`."""
        (part,) = shard
        return self.step(self.ctx, part)

    def set_aside(self, shard: list[Part], failure: str) -> R:  # noqa: ARG002 - nothing is stored
        """See `left`."""
        return self.left


def _sent(ctx: Context, step: Callable[[Context, Part], R], left: R, gpus: int) -> PartWork[R]:
    return PartWork(reopened(ctx), step, left, gpus)


def check_lake(lake: Lake, *, found: bool) -> None:
    """Raise EngineError if a worker does not find the traces of its run."""
    if not found:
        raise EngineError(
            f"{lake.root} is not the lake of this run. Give all machines the same storage under this path."
        )


def by_part(
    ctx: Context,
    parts: Iterable[Part],
    step: Callable[[Context, Part], StageResult],
    done: StageResult,
    *,
    gpus: int = 0,
    stops: bool = True,
    spends: bool = True,
) -> StageResult:
    """Run a step on parts with the executor; returns the result of the stage.

    Args:
        step: See `PartWork`.
        done: The stage's result so far.
        gpus: See `PartWork`.
        stops: See `WorkLoop`.
        spends: See `WorkLoop`.
    """
    todo = list(parts)
    work = PartWork(ctx, step, StageResult(done.stage, notes=(LEFT,)), gpus)
    with work_loop(
        ctx.progress, len(todo), done, budget=ctx.budget, gpus=gpus * ctx.executor.workers, stops=stops, spends=spends
    ) as loop:
        loop.map(ctx.executor, (Job([part], work) for part in todo))
    see_stored(ctx)
    return loop.result


def see_stored(ctx: Context) -> None:
    """After work elsewhere, check that the run still holds its lease on the lake, and list the stored files again."""
    if ctx.executor.elsewhere:
        ctx.lake.storage.check()
        ctx.lake.storage.refresh()
