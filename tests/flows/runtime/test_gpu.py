"""The GPU's slot on a real Prefect server: who holds it, who is next, and that nobody waits for what is not set up."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from conftest import WITHIN_S, until
from kit.worlds import FIRST, World, all_stages, make_world, read, trace, write
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.analysis import noise
from flows.judges import backfill as backfilling
from flows.nightly.run import run, steps_of
from flows.runtime.gpu import SLOT, TURN, FileSlots, Shared, Slots, slot
from flows.runtime.prefect import Prefect, PrefectSlots
from flows.runtime.run import Local, Runner
from tasks.core.budget import Budget
from tasks.core.grades import Answered, Grade
from tasks.graders.constant import Constant
from tasks.judges.replay import ReplayJudge
from tasks.run.build import build_context, build_contexts
from tasks.store.lake import Lake

pytestmark = pytest.mark.slow


@pytest.fixture
def server(prefect_server: Any) -> Iterator[PrefectSlots]:
    """A server without the limits; their names are this test's own."""
    own = uuid.uuid4().hex
    with temporary_settings({PREFECT_API_URL: prefect_server.url}):
        yield PrefectSlots({SLOT: f"gpu-{own}", TURN: f"turn-{own}"})


@pytest.fixture
def limits(server: PrefectSlots) -> PrefectSlots:
    """The limits as docs/operations.md sets them up."""
    with get_client(sync_client=True) as client:
        for name in server.names.values():
            client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=1))
    return server


@pytest.fixture(params=["prefect", "files"])
def slots(request: pytest.FixtureRequest, tmp_path: Path) -> Slots:
    """Slots of either kind."""
    return request.getfixturevalue("limits") if request.param == "prefect" else FileSlots(tmp_path)


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge `replay` as if its model were on a GPU."""
    monkeypatch.setattr(ReplayJudge, "gpus", 1)


class Closes:
    """A context whose models are on the GPU; it notes whether the slot was still held when they were freed."""

    def __init__(self, slots: Slots) -> None:
        self.held_at_close: list[float] = []
        self._slots = slots

    def close(self) -> None:
        """Free the models."""
        self.held_at_close.append(self._slots.holders(SLOT))


def test_the_slot_is_held_for_the_block_and_given_back_after_the_models(slots: Slots) -> None:
    ctx = Closes(slots)
    with slot(2, [ctx], lambda: slots):
        assert slots.holders(SLOT) == 1  # one slot stands for all GPUs
        assert slots.holders(TURN) == 0
        assert ctx.held_at_close == []
    assert slots.holders(SLOT) == 0
    assert ctx.held_at_close == [1]


def test_an_error_gives_it_back_too(slots: Slots) -> None:
    ctx = Closes(slots)
    with pytest.raises(ValueError, match="broken"), slot(1, [ctx], lambda: slots):
        raise ValueError("broken")
    assert (slots.holders(SLOT), ctx.held_at_close) == (0, [1])


def test_without_gpus_no_slot_is_taken(slots: Slots) -> None:
    with slot(0, [], lambda: slots):
        assert (slots.holders(SLOT), slots.holders(TURN)) == (0, 0)
        with slot(1, [], lambda: slots):  # beside it, another run may have it
            assert slots.holders(SLOT) == 1


def test_without_limits_nobody_waits(server: PrefectSlots) -> None:
    with slot(1, [], lambda: server), slot(1, [], lambda: server):
        assert not Shared(1, [], lambda: server).wanted()


def test_without_a_server_nobody_waits(server: PrefectSlots) -> None:
    nobody = {PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(nobody), slot(1, [], lambda: server):
        assert not Shared(1, [], lambda: server).wanted()


def test_a_run_that_gives_way_comes_after_the_run_that_waits(slots: Slots, tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = f"PrefectSlots({slots.names})" if isinstance(slots, PrefectSlots) else f"FileSlots(Path({str(tmp_path)!r}))"
    kind, module = made.partition("(")[0], "prefect" if "Prefect" in made else "gpu"
    other = f"""
from pathlib import Path
from flows.runtime.{module} import {kind}
from flows.runtime.gpu import slot
with slot(1, [], lambda: {made}), open({str(log)!r}, "a") as out:
    print("other", file=out)
"""
    env = {**os.environ, "PREFECT_API_URL": PREFECT_API_URL.value() or ""}
    with Shared(1, [], lambda: slots) as mine:
        assert not mine.wanted()
        waiting = subprocess.Popen([sys.executable, "-c", other], env=env)
        try:
            until(mine.wanted)
            assert not log.exists()
            mine.give_way()  # gives it back and wants it again at once
            with log.open("a") as out:
                out.write("mine\n")
            assert waiting.wait(WITHIN_S) == 0
        finally:
            waiting.kill()
            waiting.wait()
    assert log.read_text().split() == ["other", "mine"]


class Asking:
    """Slots that another run wants now and then; what held the slot is noted whenever it is given back."""

    def __init__(self, slots: Slots, wanted: Callable[[], bool]) -> None:
        self._slots, self._wanted = slots, wanted
        self.taken = 0

    def take(self, name: str) -> AbstractContextManager[object]:
        """As the real ones do."""
        self.taken += name == SLOT
        return self._slots.take(name)

    def holders(self, name: str) -> float:
        """The slot's real holders; a turn is wanted as the test has it."""
        return self._wanted() if name == TURN else self._slots.holders(name)

    def waiting(self) -> None:
        """Nothing."""


class Holding(Local):
    """Stages in this process, on these slots."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(prefect_slots=False)
        object.__setattr__(self, "_slots", slots)

    def slots(self, lake: Lake) -> Slots:
        """The test's."""
        return self._slots


@pytest.fixture
def world(tmp_path: Path) -> World:
    write(tmp_path / "logs" / "a.jsonl", [trace(f"t{i}", answer=f"Backup {i} is kept for {i} days.") for i in range(6)])
    return make_world(tmp_path, limits={"shard_requests": 2})


def test_only_the_stages_that_ask_the_judge_are_in_the_slot(world: World, on_gpu: None) -> None:
    contexts = build_contexts(world.config, FIRST, FIRST)
    found = [(g, [s.name for s in steps]) for g, steps in groupby(steps_of(contexts, retry_failures=False), attrgetter("gpus"))]  # fmt: skip
    assert [g for g, _ in found] == [0, 1, 0]
    assert found[1][1] == ["verdicts", "joint pairs"]


def night(world: World, last: date = FIRST) -> None:
    """A night without slots."""
    run(build_contexts(world.config, FIRST, last), Local(prefect_slots=False))


@pytest.mark.parametrize("runner", [Prefect, Holding])
def test_a_nightly_takes_the_slot_and_gives_it_back(
    world: World, limits: PrefectSlots, on_gpu: None, runner: Callable[..., Runner]
) -> None:
    slots = Asking(limits, lambda: False)
    run(build_contexts(world.config, FIRST, FIRST), runner(slots=slots))
    assert (slots.taken, limits.holders(SLOT), limits.holders(TURN)) == (1, 0, 0)


def test_a_backfill_that_gives_way_ends_as_one_that_does_not(world: World, limits: PrefectSlots, on_gpu: None) -> None:
    night(world)
    asked = iter([False, True, False, True])  # between shards, another run wants the slot now and then
    slots = Asking(limits, lambda: next(asked, False))
    other = world.out / "second.yaml"
    other.write_text(f"kind: replay\nseed: 1\nlog: {world.out / 'second.log'}\n")
    ctx = backfilling.load(world.config, FIRST, FIRST, judge=other, recipe=None, apps=[], sample=1.0)
    outcome = backfilling.run(ctx, Holding(slots))
    assert slots.taken == 1 + 2  # it gave way twice
    assert outcome.days[0][0].done
    paid = (world.out / "second.log").read_text().split()
    assert len(paid) == len(set(paid)) > 2 * 2  # several shards, and no request was paid for twice
    rows = read(world.warehouse, "SELECT count(*) AS n, count(DISTINCT judge_version) AS judges FROM trace_scores")
    assert rows == [{"n": 12, "judges": 2}]
    assert limits.holders(SLOT) == 0


def test_a_grader_on_the_gpu_is_kept_from_day_to_day_gives_way_and_stops_at_the_budget(
    world: World, limits: PrefectSlots
) -> None:
    later = FIRST + timedelta(days=1)
    write(world.config.parent / "logs" / "b.jsonl", [trace(f"u{i}", timestamp=f"{later}T12:00:00Z") for i in range(3)])
    night(world, later)  # so that all verdicts are there, and the budget is the grader's alone
    graded: list[float] = []  # how many held the slot at each answer
    closed: set[int] = set()  # after how many answers the model was freed
    wanted = {4, 7}  # and after how many another run wants the slot, once

    class OnGpu(Constant):
        gpus = 1

        def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
            graded.extend(limits.holders(SLOT) for _ in answers)
            return [{name: replace(g, tokens_out=1) for name, g in its.items()} for its in super().grade(answers)]

        def close(self) -> None:
            closed.add(len(graded))

    def asked() -> bool:
        found = len(graded) in wanted
        wanted.difference_update([len(graded)] if found else [])
        return found

    slots = Asking(limits, asked)
    (world.out / "grader.yaml").write_text("kind: constant\ngrades: {answer_relevancy: 5, completeness: 5, faithfulness: 1, usefulness: null}\n")  # fmt: skip
    recipe = world.out / "graded.yaml"
    recipe.write_text("name: graded\njudge: replay.yaml\nrelevance: {threads: 1}\ngrades: {grader: grader.yaml}\n")
    ctx = backfilling.load(world.config, FIRST, later, judge=None, recipe=str(recipe), apps=[], sample=1.0)
    ctx = replace(ctx, grader=OnGpu(ctx.grader._config))
    # A shard is one answer, and an answer takes four tokens: two of the newest day's three.
    stopped = backfilling.run(replace(ctx, budget=Budget(tokens=8)), Holding(slots))
    assert (stopped.spent, len(graded), closed) == ("8 tokens were used, of at most 8", 2, {2})
    assert not any(day.done for day, _ in stopped.days)
    outcome = backfilling.run(replace(ctx, budget=Budget()), Holding(slots))
    assert (outcome.spent, [day.done for day, _ in outcome.days]) == (None, [True, True])
    assert graded == [1] * 9  # nothing twice, and in the slot
    assert closed == {2, 4, 7, 9}  # not after the newest day, its third
    nights = read(world.warehouse, "SELECT date, n_scored FROM nightly_grades WHERE grade = 'faithfulness' ORDER BY 1")
    assert nights == [{"date": FIRST, "n_scored": 6}, {"date": later, "n_scored": 3}]
    assert limits.holders(SLOT) == 0


def test_noise_is_measured_in_the_slot(world: World, limits: PrefectSlots, on_gpu: None) -> None:
    all_stages(build_context(world.config, FIRST, FIRST))
    slots = Asking(limits, lambda: False)
    noise.run(world.config, FIRST, FIRST, 3, None, runner=Holding(slots))
    assert (slots.taken, limits.holders(SLOT), limits.holders(TURN)) == (1, 0, 0)
