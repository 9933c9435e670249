"""The judge that costs nothing: pure, seeded, distributed as configured, logged."""

import multiprocessing
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import judges
from tasks.core import keys
from tasks.core.config import validate
from tasks.core.errors import ConfigError, EngineError
from tasks.core.types import LABELS, Request
from tasks.judges.replay import Config, ReplayJudge

REQUESTS = [Request(keys.request_key("premise", str(i)), "premise", str(i)) for i in range(4000)]


def judge(tmp_path, **config):
    return ReplayJudge(Config(**config), tmp_path)


def test_a_verdict_depends_on_key_and_seed_alone(tmp_path):
    once = judge(tmp_path).judge(REQUESTS[:50])
    assert judge(tmp_path).judge(REQUESTS[:50][::-1])[::-1] == once
    assert judge(tmp_path, seed=1).judge(REQUESTS[:50]) != once


def test_outcomes_come_as_often_as_configured(tmp_path):
    shares = {"supported": 0.5, "partially_supported": 0.1, "unsupported": 0.1, "contradicted": 0.1}
    verdicts = judge(tmp_path, shares={**shares, "abstained": 0.1, "failure": 0.1}).judge(REQUESTS)
    counts = Counter(v.label or "failure" for v in verdicts)
    for outcome, share in {**shares, "abstained": 0.1, "failure": 0.1}.items():
        # Five standard deviations of a binomial count: sqrt(4000 * 0.5 * 0.5) = 32, times five = 160.
        assert abs(counts[outcome] - 4000 * share) < 160


@given(st.text(max_size=20), st.integers(min_value=0, max_value=9))
def test_every_verdict_is_well_formed(text, seed):
    shares = dict.fromkeys([*LABELS, "failure"], 1 / 6)
    made = ReplayJudge(Config(shares=shares, seed=seed), None)
    (verdict,) = made.judge([Request(keys.request_key(text, text), text, text)])
    assert (verdict.label is None) != (verdict.failure is None)
    if verdict.label is None:
        assert verdict.p_supported is None
        assert verdict.raw is not None
    else:
        assert 0 <= verdict.p_supported <= 1
        assert 0 <= verdict.p_contradicted <= 1
        assert verdict.p_supported + verdict.p_contradicted <= 1 + 1e-9
        assert (verdict.p_supported >= 0.5) == (verdict.label == "supported")


def test_a_share_of_zero_is_never_drawn(tmp_path):
    shares = {"supported": 1, "partially_supported": 0, "unsupported": 0, "contradicted": 0}
    assert {v.label for v in judge(tmp_path, shares=shares).judge(REQUESTS[:500])} == {"supported"}


def test_passages_are_named_where_there_are_several_and_one_decides(tmp_path):
    shown = ("one", "two", "three")
    asked = [Request(next(keys.request_keys(shown, [str(i)])), "\n\n".join(shown), str(i), shown) for i in range(300)]
    verdicts = judge(tmp_path).judge(asked)
    assert judge(tmp_path).judge(asked[::-1])[::-1] == verdicts
    for verdict in verdicts:
        assert len(set(verdict.passages)) == len(verdict.passages)
        assert bool(verdict.passages) == (verdict.label != "unsupported")
        assert set(verdict.passages) <= {1, 2, 3}
    assert {len(v.passages) for v in verdicts} == {0, 1, 2}
    assert {v.passages[0] for v in verdicts if v.passages} == {1, 2, 3}
    assert {v.passages for v in judge(tmp_path).judge(REQUESTS[:50])} == {()}


def test_tokens_are_a_quarter_of_the_characters(tmp_path):
    (verdict,) = judge(tmp_path).judge([Request("k", "a" * 30, "b" * 10)])
    assert (verdict.tokens_in, verdict.tokens_out) == (10, 0)


def test_recorded_verdicts_win_and_count_for_the_version(tmp_path):
    (tmp_path / "recorded.jsonl").write_text(
        f'{{"key": "{REQUESTS[0].key}", "label": "contradicted", "p_contradicted": 0.9}}\n'
        f'{{"key": "{REQUESTS[1].key}", "failure": "truncated", "raw": "{{\\"lab"}}\n'
    )
    made = judge(tmp_path, records="recorded.jsonl")
    first, second, third = made.judge(REQUESTS[:3])
    assert (first.label, first.p_contradicted) == ("contradicted", 0.9)
    assert (second.label, second.failure, second.raw) == (None, "truncated", '{"lab')
    assert third == judge(tmp_path).judge([REQUESTS[2]])[0]
    assert made.version != judge(tmp_path).version


def test_of_equal_keys_the_last_line_counts(tmp_path):
    line = '{"key": "a", "label": "%s"}\n'
    (tmp_path / "recorded.jsonl").write_text(line % "supported" + "\n" + line % "contradicted")
    (verdict,) = judge(tmp_path, records="recorded.jsonl").judge([Request("a", "p", "h")])
    assert verdict.label == "contradicted"


def test_the_version_depends_on_the_bytes_of_the_records(tmp_path):
    for name, label in (("x", "supported"), ("y", "supported"), ("z", "contradicted")):
        (tmp_path / name).write_text(f'{{"key": "a", "label": "{label}"}}\n')
    x, y, z = (judge(tmp_path, records=name).version for name in "xyz")
    assert x == y != z


@pytest.mark.parametrize("wrong", ['{"key": "b", "label": "true"}', '{"key": "b", "label": 3, "raw": "private words"}'])
def test_a_wrong_line_is_named_by_file_and_number_but_not_quoted(tmp_path, wrong):
    (tmp_path / "recorded.jsonl").write_text(f'{{"key": "a", "label": "supported"}}\n{wrong}\n')
    with pytest.raises(EngineError, match=r"recorded\.jsonl: line 2 .*Verdict as JSON") as caught:
        judge(tmp_path, records="recorded.jsonl")
    assert "private words" not in str(caught.value)


def test_missing_records_and_an_unwritable_log_are_engine_errors(tmp_path):
    with pytest.raises(EngineError, match="can't be read"):
        judge(tmp_path, records="none.jsonl")
    with pytest.raises(EngineError, match="can't be written"):
        judge(tmp_path, log="no/folder").judge(REQUESTS[:1])


def _judge_many(folder, name):
    logged = judge(folder, log="log")
    for i in range(200):
        logged.judge([Request(f"{name}{i:04}", "p", "h")] * 3)


def test_lines_of_several_processes_do_not_mix(tmp_path):
    fork = multiprocessing.get_context("fork")
    running = [fork.Process(target=_judge_many, args=(tmp_path, name)) for name in "pq"]
    for process in running:
        process.start()
    for process in running:
        process.join()
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name}{i:04}" for name in "pq" for i in range(200) for _ in range(3))


def test_log_beside_the_config_counts_requests_and_stays_out_of_the_version(tmp_path):
    file = tmp_path / "judge.yaml"
    file.write_text("kind: replay\nlog: paid.txt\n")
    logged = judges.load(file)
    logged.judge(REQUESTS[:3])
    logged.judge(REQUESTS[1:2])
    logged.judge([])
    assert (tmp_path / "paid.txt").read_text().split() == [r.key for r in [*REQUESTS[:3], REQUESTS[1]]]
    assert logged.version == judge(tmp_path).version


def test_shares_that_do_not_add_up_are_a_config_error():
    with pytest.raises(ConfigError, match=r"x\.yaml: shares .*add up to 1\.3"):
        validate(Config, {"shares": {"supported": 1.0}}, "x.yaml")
