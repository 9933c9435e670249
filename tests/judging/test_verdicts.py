"""Verdicts: nothing is paid for twice, whatever is interrupted or repaired in between."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.stage_kit import DAY, NEXT, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.errors import EngineError
from tasks.core.schemas import PAIRS, VERDICTS
from tasks.core.types import OUTAGE, Request, Verdict
from tasks.judging.pairs import plan_pairs
from tasks.judging.stored_verdicts import verdicts_for
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.work import shards

CHUNKS = {"a": "Apples are red.", "b": "Bananas are yellow."}


def ready(ctx: Context) -> Context:
    extract_claims(ctx)
    plan_pairs(ctx)
    return ctx


def judge_all(ctx: Context, *, retry_failures: bool = False) -> tuple[int, int]:
    first = judge_pairs(ctx, retry_failures=retry_failures)
    second = judge_joint_pairs(ctx, retry_failures=retry_failures)
    return first.computed, second.computed


class TestOnce:
    def test_the_same_text_is_judged_once_across_traces_parts_and_days(self, tmp_path: Path) -> None:
        judge = Watched()
        ctx = context(tmp_path, judge=judge, last=NEXT)
        # the same claim and chunks under other names, twice in a part, in another part, and on another day
        same = {"x": CHUNKS["a"], "y": CHUNKS["b"]}
        put(ctx, trace("t1", "Apples grow.", CHUNKS), trace("t2", "Apples grow.", same), name="0000000000000000-00000")
        put(ctx, trace("t3", "Apples grow.", CHUNKS), name="0000000000000000-00001")
        put(ctx, trace("t4", "Apples grow.", same, day=NEXT))
        ready(ctx)
        found = judge_pairs(ctx)
        assert (found.computed, found.reused) == (2, 6)  # 4 traces × 2 chunks, 2 distinct texts
        assert len(judge.asked) == 2
        assert len(rows(ctx, VERDICTS)) == 2

    def test_a_second_run_asks_nothing(self, tmp_path: Path) -> None:
        judge = Watched(lambda request: "unsupported")
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "Apples grow. Figs grow.", CHUNKS))
        assert judge_all(ready(ctx)) == (4, 2)
        asked = len(judge.calls)
        assert judge_all(ctx) == (0, 0)
        assert judge_all(ctx, retry_failures=True) == (0, 0)
        assert len(judge.calls) == asked

    def test_another_judge_version_pays_anew_and_the_old_verdicts_stay(self, tmp_path: Path) -> None:
        old, new = Watched(), Watched(version="f" * 16)
        for judge in (old, new):
            ctx = context(tmp_path, judge=judge)
            put(ctx, trace("t", "Apples grow.", CHUNKS))
            assert judge_pairs(ready(ctx)).computed == 2
        assert {v["judge_version"] for v in rows(ctx, VERDICTS)} == {old.version, new.version}

    def test_two_chunks_are_not_taken_for_one_that_reads_the_same(self, tmp_path: Path) -> None:
        # a second trace's only chunk holds, as one passage, what the joint pair of the first shows as two
        judge = Watched(lambda request: "unsupported")
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "Figs grow.", CHUNKS), trace("u", "Figs grow.", {"z": "\n\n".join(CHUNKS.values())}))
        assert judge_all(ready(ctx)) == (3, 1)
        assert len({r.premise for r in judge.asked}) == 3
        assert judge.asked[-1].passages == tuple(CHUNKS.values())


class TestOrder:
    def test_requests_with_the_same_premise_follow_one_another(self, tmp_path: Path) -> None:
        judge = Watched()
        ctx = context(tmp_path, judge=judge, limits={"shard_requests": 3})
        put(ctx, trace("t", "One. Two. Three.", CHUNKS), trace("u", "Four. Five.", {"c": "Cherries.", "d": "Dates."}))
        judge_pairs(ready(ctx))
        premises = [r.premise for r in judge.asked]
        runs = 1 + sum(a != b for a, b in pairwise(premises))
        assert runs == len(set(premises)) == 4
        assert len(premises) == 3 * 2 + 2 * 2

    def test_shards_are_of_the_configured_size(self, tmp_path: Path) -> None:
        judge = Watched()
        ctx = context(tmp_path, judge=judge, limits={"shard_requests": 3})
        put(ctx, trace("t", "One. Two. Three. Four.", CHUNKS))
        judge_pairs(ready(ctx))
        assert [len(c) for c in judge.calls] == [3, 3, 2]
        assert sorted(p.rows() for p in ctx.lake.parts(VERDICTS)) == [2, 3, 3]

    def test_neighbors_share_evidence_across_traces_and_the_verdicts_are_the_same(self, tmp_path: Path) -> None:
        def stored(root: Path, most: int) -> tuple[list[tuple[str, ...]], set[tuple[str, str]]]:
            root.mkdir()
            judge = Watched(lambda r: "supported" if len(r.hypothesis) % 2 else "unsupported")
            pairing = {"kind": "all_chunks"}
            ctx = context(
                root, judge=judge, recipe={"pairing": pairing}, limits={"shard_requests": 2, "sort_requests": most}
            )
            other = {"c": "Cherries are small.", "d": "Dates are sweet."}
            half = {**CHUNKS, "d": "Dates are sweet."}  # begins like the first
            put(
                ctx,
                trace("t1", "One. Three.", CHUNKS), trace("t2", "Five. Six.", other), trace("t3", "Seven. Ten.", half),
                trace("t4", "Twelve. Twenty.", CHUNKS), trace("t5", "Thirty.", other),
            )  # fmt: skip
            judge_pairs(ready(ctx))
            assert [len(c) for c in judge.calls] == [2, 2, 2, 2, 1]
            return [r.shown for r in judge.asked], {(v["request_key"], v["label"]) for v in rows(ctx, VERDICTS)}

        (sorted_, labels), (unsorted, same) = stored(tmp_path / "a", 100), stored(tmp_path / "b", 2)
        assert labels == same
        assert len(labels) == 9

        def runs(shown: list[tuple[str, ...]]) -> int:
            return 1 + sum(a != b for a, b in pairwise(shown))

        assert runs(sorted_) == 3 < runs(unsorted)
        # those that begin alike are neighbors too
        assert [len(s) for s in dict.fromkeys(sorted_) if s[0] == CHUNKS["a"]] == [2, 3]

    @given(st.lists(st.integers(0, 9)), st.integers(1, 6))
    def test_shards_for_several_workers_divide_no_group(self, texts: list[int], size: int) -> None:
        cut = list(shards(texts, size, held=len(texts), order=lambda text: text, whole=True))
        assert [text for shard in cut for text in shard] == sorted(texts)
        where = [(text, n) for n, shard in enumerate(cut) for text in set(shard)]
        assert len(where) == len(set(texts))  # each text is in one shard
        assert all(len(shard) <= size or len(set(shard)) == 1 for shard in cut)

    def test_a_window_of_the_sort_is_never_smaller_than_a_shard(self, tmp_path: Path) -> None:
        judge = Watched()
        ctx = context(tmp_path, judge=judge, limits={"shard_requests": 4, "sort_requests": 1})
        put(ctx, trace("t", "One. Two. Three.", CHUNKS))
        judge_pairs(ready(ctx))
        assert [len(c) for c in judge.calls] == [4, 2]


class TestOutage:
    @pytest.mark.parametrize("shards", [0, 1, 2])
    def test_what_was_judged_before_an_outage_is_kept_and_only_the_rest_is_asked(
        self, tmp_path: Path, shards: int
    ) -> None:
        down = Watched(up_for=shards)
        ctx = context(tmp_path, judge=down, limits={"shard_requests": 2})
        put(ctx, trace("t", "One. Two. Three.", CHUNKS))
        with pytest.raises(EngineError, match="the model is down"):
            judge_pairs(ready(ctx))
        assert len(rows(ctx, VERDICTS)) == 2 * shards  # nothing is stored for the shard that failed
        up = Watched()
        found = judge_pairs(context(tmp_path, judge=up, limits={"shard_requests": 2}))
        assert (found.computed, found.reused) == (6 - 2 * shards, 2 * shards)
        assert {r.key for r in up.asked}.isdisjoint({r.key for r in down.asked})
        assert len(rows(ctx, VERDICTS)) == 6

    def test_what_could_not_be_asked_is_not_stored_and_the_next_run_asks_it(self, tmp_path: Path) -> None:
        def down_for(word: str):
            return lambda r: Verdict("", failure=OUTAGE, tokens_in=9) if word in r.hypothesis else "unsupported"

        judge = Watched(down_for("Two"))
        ctx = context(tmp_path, judge=judge, limits={"shard_requests": 2})
        put(ctx, trace("t", "One. Two. Three.", CHUNKS))
        first = judge_pairs(ready(ctx))
        # What was read for those that are lost is paid for too.
        assert (first.computed, first.reused, first.tokens_in) == (4, 0, 4 * 7 + 2 * 9)
        assert first.notes == ("2 requests could not be made (outage); the next run makes them again.",)
        assert judge_joint_pairs(ctx).computed == 2  # the claim of those two waits
        assert OUTAGE not in {v["failure"] for v in rows(ctx, VERDICTS)}
        judge.calls.clear()
        judge.rule = lambda request: "unsupported"
        again = judge_pairs(ctx)
        assert (again.computed, again.reused, again.notes) == (2, 4, ())
        assert {r.hypothesis for r in judge.asked} == {"Two."}
        assert judge_joint_pairs(ctx).computed == 1

    def test_a_shard_of_nothing_but_outages_writes_nothing(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, judge=Watched(lambda request: Verdict("", failure=OUTAGE)))
        put(ctx, trace("t", "One.", CHUNKS))
        done = judge_pairs(ready(ctx))
        assert (done.computed, len(done.notes), ctx.lake.parts(VERDICTS)) == (0, 1, [])

    def test_an_outage_in_the_second_looks(self, tmp_path: Path) -> None:
        judge = Watched(lambda request: "unsupported", up_for=1)
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "One. Two.", CHUNKS))
        judge_pairs(ready(ctx))
        with pytest.raises(EngineError):
            judge_joint_pairs(ctx)
        judge.up_for = None
        assert judge_all(ctx) == (0, 2)


class TestFailures:
    @staticmethod
    def fails_on(word: str, failure: str = "unparsable"):
        def rule(request: Request) -> str | Verdict:
            if word in request.hypothesis and "Apples" in request.premise:
                return Verdict("", failure=failure, raw="{", tokens_in=3)
            return "unsupported"

        return rule

    def test_a_failure_is_stored_and_not_asked_again(self, tmp_path: Path) -> None:
        judge = Watched(self.fails_on("Two"))
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "One. Two.", CHUNKS))
        assert judge_all(ready(ctx)) == (4, 1)
        (failed,) = [v for v in rows(ctx, VERDICTS) if v["failure"]]
        assert (failed["label"], failed["failure"], failed["raw"]) == (None, "unparsable", "{")
        assert judge_all(ctx) == (0, 0)

    def test_retrying_asks_exactly_the_failures_and_their_label_then_counts(self, tmp_path: Path) -> None:
        judge = Watched(self.fails_on("Two"))
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "One. Two.", CHUNKS))
        judge_all(ready(ctx))
        judge.calls.clear()
        judge.rule = lambda request: "unsupported"
        # the failed request, then the joint pair that had to wait for it
        assert judge_all(ctx, retry_failures=True) == (1, 1)
        (again, joint) = judge.asked
        assert (again.premise, again.hypothesis) == ("Apples are red.", "Two.")
        assert (joint.premise, joint.hypothesis) == ("Apples are red.\n\nBananas are yellow.", "Two.")
        with ctx.queries() as queries:
            known = {
                v["request_key"]: v["label"]
                for v in verdicts_for(
                    ctx, queries, ctx.judges[0], trace_parts(ctx)[0], ctx.lake.parts(PAIRS)
                ).to_pylist()
            }
        assert known[again.key] == "unsupported"
        assert len([v for v in rows(ctx, VERDICTS) if v["failure"]]) == 1  # it stays on record
        assert judge_all(ctx, retry_failures=True) == (0, 0)

    def test_a_claim_with_an_open_look_waits_with_its_second_one(self, tmp_path: Path) -> None:
        judge = Watched(self.fails_on("One"))
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "One.", CHUNKS))
        assert judge_all(ready(ctx)) == (2, 0)
        assert [p["pair_kind"] for p in rows(ctx, PAIRS)] == ["single", "single"]
        judge.rule = lambda request: "unsupported"
        judge_all(ctx, retry_failures=True)
        assert [p["pair_kind"] for p in rows(ctx, PAIRS)] == ["single", "single", "joint"]

    def test_a_failure_that_fails_again_is_asked_again_only_when_reported_so(self, tmp_path: Path) -> None:
        judge = Watched(self.fails_on("One"))
        ctx = context(tmp_path, judge=judge)
        put(ctx, trace("t", "One.", CHUNKS))
        judge_all(ready(ctx))
        assert judge_all(ctx, retry_failures=True) == (1, 0)
        assert judge_all(ctx) == (0, 0)
        assert judge_all(ctx, retry_failures=True) == (1, 0)


def test_tokens_and_engine_are_on_record(tmp_path: Path) -> None:
    verdict = Verdict("", "unsupported", tokens_in=7, tokens_cached=5, tokens_out=2)
    ctx = context(tmp_path, judge=Watched(lambda request: verdict, gpus=2))
    put(ctx, trace("t", "One. Two.", CHUNKS))
    found = judge_pairs(ready(ctx))
    assert (found.tokens_in, found.tokens_cached, found.tokens_out) == (4 * 7, 4 * 5, 4 * 2)
    assert (found.judge, found.gpus) == (ctx.judges[0].judge.version, 2)
    stored = rows(ctx, VERDICTS)
    assert {(v["engine"], v["date"], v["sample"]) for v in stored} == {("watched", DAY, 0)}
    assert {(v["tokens_in"], v["tokens_cached"], v["tokens_out"], *v["passages"]) for v in stored} == {(7, 5, 2)}
    assert judge_pairs(ctx).gpus == 0  # nothing was asked, so that no model was loaded


def test_no_look_no_call(tmp_path: Path) -> None:
    judge = Watched()
    ctx = context(tmp_path, judge=judge)
    put(ctx, trace("t", "One.", {}))
    assert judge_all(ready(ctx)) == (0, 0)
    assert judge.calls == []


@pytest.mark.parametrize(
    ("wrong", "raw"),
    [
        (Verdict("k", label="sure"), "sure"),  # type: ignore[arg-type] # not one of the labels
        (Verdict("k"), "None"),  # neither a label nor a failure
        (Verdict("k", label="supported", failure="truncated", raw="{"), "{"),  # both
        (Verdict("k", label="supported", passages=(2,)), "supported"),  # there is one passage
        (Verdict("k", label="supported", passages=(0,)), "supported"),  # they count from 1
    ],
)
def test_a_verdict_that_is_none_is_kept_as_a_failure(tmp_path: Path, wrong: Verdict, raw: str) -> None:
    """Exactly one of label and failure is set, whatever a judge returns: such a claim is unjudged, not unsupported."""
    judge = Watched()
    judge.judge = lambda requests: [replace(wrong, key=r.key) for r in requests]  # type: ignore[method-assign]
    ctx = context(tmp_path, judge=judge)
    put(ctx, trace("t", "Apples grow.", CHUNKS))
    judge_pairs(ready(ctx))
    stored = rows(ctx, VERDICTS)
    assert {(v["label"], v["failure"], v["raw"]) for v in stored} == {(None, "invalid_verdict", raw)}
