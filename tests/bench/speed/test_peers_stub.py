"""The benchmark on the stub: its figures, and the traces of its nights."""

import json

import msgspec
import pytest

from bench.speed import stub
from bench.speed.peers_stub import changed, differing, engine_seconds, per_trace
from tasks.core.types import Trace
from tasks.judges import rater_model
from tasks.run.build import build_context

CLEAN = {"a": ["judged", "supported", False], "b": ["judged", "unsupported", True], "c": ["unjudged", None, False]}


def test_a_claim_that_is_now_unjudged_has_not_changed_its_label():
    assert changed(CLEAN, CLEAN | {"a": ["unjudged", None, None]}) == 0


@pytest.mark.parametrize("now", [["judged", "contradicted", False], ["abstained", None, False], ["na", None, False]])
def test_a_claim_with_another_label_has(now):
    assert changed(CLEAN, CLEAN | {"a": now}) == 1


def test_a_claim_that_is_gone_has_changed_and_misuse_alone_is_no_label():
    assert changed(CLEAN, {k: v for k, v in CLEAN.items() if k != "b"}) == 1
    assert changed(CLEAN, CLEAN | {"a": ["judged", "supported", None]}) == 0


def test_what_differs_is_missing_added_or_other():
    assert differing(CLEAN, dict(reversed(CLEAN.items()))) == 0
    assert differing(CLEAN, {"a": CLEAN["a"], "b": ["judged", "unsupported", False], "d": CLEAN["c"]}) == 3
    assert differing({"a": None}, {}) == 1


def test_figures_are_per_trace_and_seconds_are_of_all():
    def phase(calls, prompt, cached, written, peak):
        counts = {"calls": calls, "prompt": prompt, "cached": cached, "written": written}
        return {"wall": 9.0, "cpu": 9.0, "peak_mb": peak, **counts}

    found = {
        "judged": 4,
        "phases": {"single pairs": phase(20, 4000, 3000, 200, 50.0), "grades": phase(4, 800, 780, 40, 70.0)},
        "engine": {
            "single pairs": {"wall": 1.0, "cpu": 0.02},
            "joint pairs": {"wall": 0.5, "cpu": 9.0},
            "grades": {"wall": 0.25, "cpu": 0.01},
        },
    }
    made = per_trace(found, ("single pairs", "grades"))
    # 24 calls, 4,800 tokens of which 3,780 were cached, 240 written, 30 ms: a fourth of each.
    expected = {"calls": 6, "prompt": 1200, "cached": 945, "fresh": 255, "written": 60, "cpu": 7.5}
    assert made == pytest.approx(expected | {"wall": 1.25, "peak": 70})
    assert engine_seconds(found) == 1.75


def test_traces_number_their_chunks_as_answers_refer_to_them():
    rows = [{"id": f"t{n}", "question": "q", "answer": "Tea [2].", "chunks": ["water", "tea"]} for n in range(70)]
    made = [msgspec.json.decode(line, type=Trace) for line in stub.as_traces(rows)]
    assert [t.trace_id for t in made] == [r["id"] for r in rows]
    assert {t.timestamp.date() for t in made} == {stub.NIGHT.date()}
    assert [(c.chunk_id, c.text) for c in made[0].chunks] == [("1", "water"), ("2", "tea")]


def test_without_the_shared_data_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADLINE_SHARED", str(tmp_path))
    with pytest.raises(SystemExit, match=r"traces_200\.jsonl does not exist\. Set LEADLINE_SHARED"):
        stub.rows()
    with pytest.raises(SystemExit, match=r"stub_server\.py does not exist"), stub.running():
        pass


def test_all_requests_go_to_the_stub(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADLINE_SHARED", str(tmp_path))
    (tmp_path / "data/stub").mkdir(parents=True)
    row = {"id": "t", "question": "q", "answer": "Tea [1].", "chunks": ["tea"]}
    (tmp_path / "data/stub/traces_200.jsonl").write_text(json.dumps(row) + "\n")
    config = stub.night(tmp_path / "night", "http://127.0.0.1:9", 100)
    day = stub.NIGHT.date()
    ctx = build_context(config, day, day, today=day)
    assert ctx.settings.pairing.kind == "all_chunks"
    assert ctx.config.limits.shard_requests == 100
    assert ctx.judges[0].judge.engine == "openai_server"
    graded = rater_model.load(tmp_path / "night/relevance.yaml", ("passages", "question", "answer"))
    assert graded._config.model == ctx.judges[0].judge._config.model
