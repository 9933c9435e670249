"""What is done with a shard: it is stored once, and only on machines that have the run's lake and judge."""

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from kit.stage_kit import DAY, Watched, context, put, trace

from tasks import judges
from tasks.core import keys
from tasks.core.errors import ConfigError, EngineError
from tasks.core.schemas import VERDICTS
from tasks.core.types import OUTAGE, Request, Verdict
from tasks.judging.judge_work import JudgeWork
from tasks.run.result import StageResult

SHARD = [Request(keys.request_key("Apples.", claim), "Apples.", claim) for claim in ("Red.", "Round.")]


def work(root: Path, judge: Watched | None = None) -> JudgeWork:
    ctx = context(root, judge=judge)
    return JudgeWork("verdicts", ctx.lake, ctx.judges[0], put(ctx, trace("t")).name, str(DAY))


def test_a_shard_that_is_stored_is_found_with_its_tokens(tmp_path: Path) -> None:
    one = work(tmp_path)
    assert one.stored(SHARD) is None
    done = one(SHARD)
    assert done == StageResult("verdicts", 2, tokens_in=14)  # Watched: 7 tokens each
    assert one.stored(SHARD) == done
    assert one.stored(SHARD[:1]) is None


def test_two_workers_that_judge_one_shard_store_it_once(tmp_path: Path) -> None:
    first, second = work(tmp_path), work(tmp_path, Watched(lambda request: "unsupported"))
    first(SHARD)
    second(SHARD)
    (part,) = first.lake.parts(VERDICTS)
    assert part.read()["label"].to_pylist() == ["supported", "supported"]
    assert [p.name for p in part.path.parent.iterdir()] == [part.path.name]  # no temporary file


def test_failures_that_are_judged_again_are_another_part(tmp_path: Path) -> None:
    failing = work(tmp_path)
    failing.set_aside(SHARD, "worker_died")
    again = replace(work(tmp_path), attempt="2026-11-02")
    assert again.stored(SHARD) is None
    again(SHARD)
    found = [(row["failure"], row["label"]) for part in again.lake.parts(VERDICTS) for row in part.read().to_pylist()]
    assert Counter(found) == {("worker_died", None): 2, (None, "supported"): 2}


def test_requests_that_were_lost_are_lost_to_who_finds_the_part(tmp_path: Path) -> None:
    half = work(tmp_path, Watched(lambda r: Verdict(r.key, failure=OUTAGE) if r is SHARD[0] else "supported"))
    assert half(SHARD) == half.stored(SHARD) == StageResult("verdicts", 1, lost=1, tokens_in=7)


def test_an_empty_folder_in_the_place_of_the_lake_is_refused(tmp_path: Path) -> None:
    one = work(tmp_path)
    one.check()
    one.lake.root.rename(tmp_path / "of another machine")
    with pytest.raises(EngineError, match=r"lake is not the lake of this run\. Give all machines the same storage"):
        one.check()
    assert not one.lake.root.exists()


class TestSent:
    def test_a_judge_is_opened_by_its_file(self, tmp_path: Path) -> None:
        judge = work(tmp_path).judge
        own = replace(judge, judge=judges.load(judge.path))
        sent = pickle.loads(pickle.dumps(own))
        assert (sent.version, sent.judge.engine) == (own.version, "replay")

    def test_another_version_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match=r"judge\.yaml: is judge [0-9a-f]{16} here, but 0123456789abcdef"):
            pickle.loads(pickle.dumps(work(tmp_path)))

    def test_a_judge_whose_file_is_not_here_is_refused(self, tmp_path: Path) -> None:
        pickled = pickle.dumps(work(tmp_path))
        (tmp_path / "judge.yaml").unlink()
        with pytest.raises(ConfigError, match=r"judge\.yaml does not exist"):
            pickle.loads(pickled)
