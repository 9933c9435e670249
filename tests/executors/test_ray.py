"""The executor `ray`: the same verdicts as in one process, whatever happens to workers, and little is paid for twice."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kit.root import ROOT
from kit.stage_kit import DAY, TODAY
from kit.workers.doubling import AFTER, BEFORE, Doubling

from tasks import executors
from tasks.claims.extract import extract_claims
from tasks.core.budget import Budget
from tasks.core.errors import ConfigError, EngineError
from tasks.core.progress import Silent
from tasks.core.schemas import CLAIMS, GRADES, PAIRS, RELEVANCE, VERDICTS
from tasks.executors import Executor, Job
from tasks.executors.ray import DIED, LOOPBACK, Config, Ray, build, code
from tasks.ingest.ingest import ingest
from tasks.judging.grades import grade_answers
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.build import build_context
from tasks.run.context import Context

pytestmark = pytest.mark.slow
TRACES = 12  # of the sample
PART = 5  # traces
SHARD = 24  # requests


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Ray on this machine, once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOOPBACK, "0")
        patch.setenv("PYTHONPATH", str(ROOT / "tests"))  # where workers find `kit`
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # other tests may need the memory
        import ray  # noqa: PLC0415 - after its variables are set

        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        yield
        ray.shutdown()


@pytest.fixture
def two() -> Iterator[Ray]:
    with_two = Ray(Config(workers=2, cpus=0.5))
    yield with_two
    with_two.close()


def never() -> bool:
    return False


def results(executor: Ray, work: Doubling, *shards: list[int]) -> dict[int, str]:
    return {job.shard[0]: done for job, done in executor.map([Job(shard, work) for shard in shards], never)}


class TestWorkersThatDie:
    def test_each_shard_is_done_and_one_that_ends_every_worker_is_set_aside(self, two: Ray, tmp_path: Path) -> None:
        work = Doubling(tmp_path, {3: (BEFORE, 1), 5: (AFTER, 1), 7: (BEFORE, 99)})
        found = results(two, work, *([n, 10 * n] for n in range(1, 10)))
        assert found == {n: DIED if n == 7 else f"[{2 * n}, {20 * n}]" for n in range(1, 10)}
        # 3 is begun again; 5 was stored, which the next worker sees; 7 has ended three workers
        assert Counter(work.begun()) == {n: {3: 2, 7: 3}.get(n, 1) for n in range(1, 10)}

    def test_a_shard_that_ends_workers_before_any_other_is_done_is_the_models_fault(self, tmp_path: Path) -> None:
        one = Ray(Config(workers=1, cpus=0.5))
        with pytest.raises(EngineError, match="died before any had completed a shard"):
            results(one, Doubling(tmp_path, {1: (BEFORE, 99)}), [1])


class TestErrors:
    def test_an_error_of_the_work_names_the_worker_and_ends_all(self, two: Ray, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match=r"process \d+ on .*: the model is down. Start it\."):
            results(two, Doubling(tmp_path, broken=1), [1], [2])
        assert two.pids == []

    def test_a_worker_that_lacks_what_the_work_needs_does_none(self, two: Ray, tmp_path: Path) -> None:
        work = Doubling(tmp_path, missing="the lake is not here. Mount it.")
        with pytest.raises(EngineError, match="the lake is not here"):
            results(two, work, [1])
        assert work.begun() == []

    def test_each_work_is_checked_also_by_a_worker_that_has_worked(self, two: Ray, tmp_path: Path) -> None:
        assert results(two, Doubling(tmp_path), [1]) == {1: "[2]"}
        with pytest.raises(EngineError, match="the lake is not here"):
            results(two, Doubling(tmp_path, missing="the lake is not here. Mount it."), [2])

    def test_a_worker_with_another_leadline_is_refused(self, tmp_path: Path) -> None:
        work = Doubling(tmp_path)
        with pytest.raises(EngineError, match=r"has leadline .*, but the run has leadline 7\. Install the same"):
            results(Ray(Config(workers=1, cpus=0.5), "leadline 7"), work, [1])
        assert work.begun() == []

    def test_a_cluster_without_room_is_not_waited_for_longer_than_configured(self, tmp_path: Path) -> None:
        big = Ray(Config(workers=1, cpus=64, start_minutes=0.01))
        with pytest.raises(
            EngineError, match=r"no worker with 64 CPU cores and 0 GPUs has started within 0\.01 minutes"
        ):
            results(big, Doubling(tmp_path), [1])

    def test_an_address_where_nobody_answers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ray.is_initialized", lambda: False)
        nobody = Ray(Config(address="127.0.0.1:1"))
        with pytest.raises(
            EngineError, match=r"executor\.address '127\.0\.0\.1:1': no Ray cluster can be reached \(.*refused"
        ):
            results(nobody, Doubling(tmp_path), [1])

    def test_a_misspelled_kind_and_a_package_that_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ConfigError, match=r"night\.yaml: executor\.kind is 'rya'.* Did you mean 'ray'"):
            executors.load({"kind": "rya"}, "night.yaml")
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(ConfigError, match=r"executor\.kind is ray, which is not installed.*leadline\[ray\]"):
            build(Config(), "night.yaml")


class TestBudget:
    def test_no_shard_is_begun_after_the_end_and_those_in_flight_are_kept(self, two: Ray, tmp_path: Path) -> None:
        work, done = Doubling(tmp_path), list[str]()
        for _, result in two.map((Job([n], work) for n in range(100)), lambda: len(done) >= 2):
            done.append(result)
        # two were done when the budget ended; the other worker had one in its hands
        assert 2 <= len(done) <= 3
        assert len(work.begun()) == len(done)


def night(root: Path, judge: str, executor: Executor | None = None) -> Context:
    """The first traces of the sample with their pairs planned, in a lake below `root`, in several parts."""
    root.mkdir()
    lines = (ROOT / "data/sample/2026-11-01.jsonl").read_text().splitlines(keepends=True)
    (root / "log.jsonl").write_text("".join(lines[:TRACES]))
    settings = {"kind": "replay", "log": str(root / "judged.log")}
    (root / "replay.yaml").write_text(yaml.safe_dump(settings))
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": [{"kind": "jsonl", "paths": ["log.jsonl"]}],
        "recipe": {
            "judge": "replay.yaml" if judge == "replay" else str(ROOT / f"configs/judges/{judge}.yaml"),
            "grades": {"grader": str(ROOT / "configs/graders/random.yaml")},
            "pairing": {"kind": "top_k", "k": 2},
        },
        "limits": {"shard_requests": SHARD, "part_traces": PART},
    }
    (root / "nightly.yaml").write_text(yaml.safe_dump(config))
    ctx = build_context(root / "nightly.yaml", DAY, DAY, today=TODAY)
    ctx = replace(ctx, executor=executor or ctx.executor)
    for stage in (ingest, extract_claims, plan_pairs):
        stage(ctx)
    return ctx


def judged(ctx: Context) -> list[dict[str, object]]:
    """All verdicts after judging, but for when they were stored, and how a text's tokens are shared among requests."""
    judge_pairs(ctx, keep=True)
    judge_joint_pairs(ctx)
    rows = [row for part in ctx.lake.parts(VERDICTS) for row in part.read().to_pylist()]
    left_out = {"created_at", "tokens_in"}
    return sorted(({k: v for k, v in row.items() if k not in left_out} for row in rows), key=lambda r: r["request_key"])


def tables(ctx: Context) -> dict[str, list[str]]:
    """Every row of what the executor makes, column by column.

    But for what `judged` leaves out, and the tokens of relevance: a model reads a text that it has read before for free.
    """
    score_relevance(ctx)
    grade_answers(ctx)
    made = (CLAIMS, PAIRS, RELEVANCE, GRADES)
    rows = {table.name: ctx.lake.frame(table).drop("tokens_in", strict=False).rows(named=True) for table in made}
    return {name: sorted(map(repr, found)) for name, found in {**rows, "verdicts": judged(ctx)}.items()}


class Kills(Silent):
    """Progress that kills a worker after the first shard and after the third, in the middle of what others do."""

    def __init__(self, executor: Ray) -> None:
        self._executor, self._steps = executor, 0
        self.killed: list[int] = []

    def advance(self, steps: int = 1) -> None:
        self._steps += 1  # the first one counts what is reused
        alive = [pid for pid in self._executor.pids if pid not in self.killed]
        if alive and len(self.killed) < 2 and self._steps >= 2 * (len(self.killed) + 1):
            os.kill(alive[-1], signal.SIGKILL)
            self.killed.append(alive[-1])


class TestTables:
    def test_they_are_those_of_one_process(self, tmp_path: Path, two: Ray) -> None:
        alone = tables(night(tmp_path / "local", "replay"))
        ctx = night(tmp_path / "ray", "replay", two)
        assert len(ctx.lake.parts(CLAIMS)) == -(-TRACES // PART)
        assert tables(ctx) == alone
        assert all(alone.values())

    def test_what_is_stored_is_not_computed_again(self, tmp_path: Path, two: Ray) -> None:
        ctx = night(tmp_path / "ray", "replay")
        stored = {table.name: ctx.lake.frame(table).height for table in (CLAIMS, PAIRS)}
        ctx = replace(ctx, executor=two)
        assert (extract_claims(ctx).reused, plan_pairs(ctx).reused) == (stored["claims"], stored["pairs"])
        assert two.pids == []  # nothing is missing, so no worker starts
        gone = ctx.lake.parts(PAIRS)[0]
        planned = gone.rows()
        ctx.lake.drop(PAIRS, gone.name, *gone.partition)
        again = plan_pairs(ctx)
        assert (again.computed, again.reused) == (planned, stored["pairs"] - planned)

    def test_a_worker_whose_recipe_is_another_is_refused(self, tmp_path: Path, two: Ray) -> None:
        ctx = replace(night(tmp_path / "ray", "replay"), executor=two, recipe="0123456789abcdef")
        with pytest.raises(EngineError, match=r"is recipe .* here, but 0123456789abcdef where the run was started"):
            plan_pairs(ctx)


class TestVerdicts:
    @pytest.mark.parametrize(("judge", "workers"), [("replay", 1), ("replay", 2), ("similarity", 1), ("nli", 2)])
    def test_they_are_those_of_one_process(self, judge: str, workers: int, tmp_path: Path) -> None:
        alone = judged(night(tmp_path / "local", judge))
        assert len(alone) > 3 * SHARD
        ctx = replace(night(tmp_path / "ray", judge), executor=Ray(Config(workers=workers, cpus=0.5)))
        assert judged(ctx) == alone

    def test_they_are_after_kills_and_at_most_the_shard_in_flight_is_judged_twice(
        self, tmp_path: Path, two: Ray
    ) -> None:
        alone = judged(night(tmp_path / "local", "replay"))
        killing = Kills(two)
        ctx = replace(night(tmp_path / "killed", "replay"), executor=two, progress=killing)
        assert judged(ctx) == alone
        assert killing.killed
        asked = Counter((tmp_path / "killed" / "judged.log").read_text().split())
        assert set(asked) == {row["request_key"] for row in alone}
        assert sum(asked.values()) - len(asked) <= len(killing.killed) * SHARD

    def test_tokens_end_the_work_of_all_workers(self, tmp_path: Path, two: Ray) -> None:
        whole = night(tmp_path / "whole", "replay")
        tokens = judge_pairs(whole).tokens_in
        ctx = replace(night(tmp_path / "budget", "replay"), executor=two, budget=Budget(tokens=1))
        first = judge_pairs(ctx, keep=True)
        # the first shard ends the budget; the other worker has one more in its hands, so at most two of four are paid for
        most = max(sum(part.read()["tokens_in"].to_pylist()) for part in whole.lake.parts(VERDICTS))
        assert 1 <= first.tokens_in <= 2 * most < tokens
        rest = judge_pairs(replace(ctx, budget=Budget()))
        assert first.tokens_in + rest.tokens_in == tokens


def test_the_code_of_a_worker_is_told_apart_by_a_hash() -> None:
    assert code() == code()
    assert code().startswith("leadline ")
