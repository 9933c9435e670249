"""Pairs: which claim is shown with which evidence, and keys that are those of the text the judge reads."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.stage_kit import DAY, NEXT, Directions, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.budget import Budget
from tasks.core.schemas import CLAIMS, PAIRS
from tasks.judging.pairs import pair_parts, plan_pairs
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.plan import trace_parts

CHUNKS = {"a": "Apples are red.", "b": "Bananas are yellow.", "c": "Cherries are small.", "d": "Dates are sweet."}


def planned(ctx: Context) -> list[tuple[str, list[str], bool]]:
    """Claim's words, chunks shown, cited: of every pair, in the order of the pairs."""
    hypotheses = {c["claim_id"]: c["hypothesis"].rstrip(".") for c in rows(ctx, CLAIMS)}
    return [(hypotheses[p["claim_id"]], [e["chunk_id"] for e in p["evidence"]], p["cited"]) for p in rows(ctx, PAIRS)]


def single_pairs(ctx: Context, *traces: dict) -> list[tuple[str, list[str], bool]]:
    put(ctx, *traces)
    extract_claims(ctx)
    plan_pairs(ctx)
    return planned(ctx)


def test_per_chunk_shows_every_claim_with_every_chunk(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    found = single_pairs(ctx, trace("t", "Apples are red [1]. Figs are rare.", {k: CHUNKS[k] for k in "ab"}))
    # pairs with the same evidence side by side
    assert found == [
        ("Apples are red", ["a"], True),
        ("Figs are rare", ["a"], False),
        ("Apples are red", ["b"], False),
        ("Figs are rare", ["b"], False),
    ]


def test_cited_shows_only_the_cited_chunks(tmp_path: Path) -> None:
    ctx = context(tmp_path, recipe={"pairing": {"kind": "cited"}})
    found = single_pairs(ctx, trace("t", "Fruit has colors [1][3]. Figs are rare.", CHUNKS))
    assert found == [("Fruit has colors", ["a"], True), ("Fruit has colors", ["c"], True)]


def test_a_trace_without_chunks_or_claims_has_no_pairs(tmp_path: Path) -> None:
    ctx = context(tmp_path, recipe={"pairing": {"kind": "top_k"}})
    assert single_pairs(ctx, trace("t", "Figs are rare.", {}), trace("u", "# A heading", CHUNKS)) == []
    assert len(ctx.lake.parts(PAIRS)) == 1  # and that is on record: it is not looked at again
    assert plan_pairs(ctx).computed == 0


class TestTopK:
    # One axis a fruit; the claim about fruit lies between bananas and dates, nearer to dates.
    AXES: ClassVar = {
        "A": (1, 0, 0, 0),
        "B": (0, 1, 0, 0),
        "C": (0, 0, 1, 0),
        "D": (0, 0, 0, 1),
        "F": (0.1, 0.5, 0.2, 0.8),
    }

    def of(self, text: str) -> tuple[float, ...]:
        return self.AXES[text[0]]

    @pytest.mark.parametrize(
        ("k", "answer", "expected"),
        [
            (1, "Fruit is good.", "d"),
            (2, "Fruit is good.", "bd"),
            (3, "Fruit is good.", "bcd"),
            (9, "Fruit is good.", "abcd"),
            (1, "Fruit is good [1].", "ad"),  # the cited one, far as it is, and the nearest
            (1, "Fruit is good [4].", "d"),  # which may be the same
            (2, "Bananas are nice.", "ab"),  # a, c and d are equally far: the one that comes first
        ],
    )
    def test_the_nearest_chunks_and_the_cited_ones(self, tmp_path: Path, k: int, answer: str, expected: str) -> None:
        ctx = context(tmp_path, recipe={"pairing": {"kind": "top_k", "k": k}}, embedder=Directions(self.of))
        found = single_pairs(ctx, trace("t", answer, CHUNKS))
        assert [c for _, chunks, _ in found for c in chunks] == list(expected)
        cited = {c for _, (c,), is_cited in found if is_cited}
        assert cited == ({"a"} if "[1]" in answer else {"d"} if "[4]" in answer else set())

    def test_a_chunk_is_as_near_as_its_nearest_window_and_all_its_windows_are_shown(self, tmp_path: Path) -> None:
        # the first chunk: 18 words about apples, then 18 about dates; windows of 20 words cut it at the sentence
        long = "Apples " + "and so on " * 5 + "are red. " + "Dates " + "and so on " * 5 + "are sweet."
        ctx = context(
            tmp_path,
            recipe={"pairing": {"kind": "top_k", "k": 1, "window_words": 20}},
            embedder=Directions(lambda text: self.of(text.strip())),
        )
        found = single_pairs(ctx, trace("t", "Dates are good.", {"a": long, "b": CHUNKS["b"]}))
        assert [c for _, c, _ in found] == [["a"], ["a"]]

    def test_claims_of_several_traces_are_ranked_among_their_own_chunks(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, recipe={"pairing": {"kind": "top_k", "k": 1}}, embedder=Directions(self.of))
        one = trace("t", "Fruit is good. Apples are nice.", {"a": CHUNKS["a"], "b": CHUNKS["b"]})
        two = trace("u", "Fruit is good.", {"c": CHUNKS["c"], "d": CHUNKS["d"]})
        found = {(claim, *chunks) for claim, chunks, _ in single_pairs(ctx, one, two)}
        assert found == {("Fruit is good", "b"), ("Apples are nice", "a"), ("Fruit is good", "d")}

    def test_its_tokens_are_counted(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, recipe={"pairing": {"kind": "top_k"}}, embedder=Directions(self.of))
        put(ctx, trace("t", "Fruit is good.", CHUNKS))
        extract_claims(ctx)
        assert plan_pairs(ctx).tokens_in == 5  # four chunks and a claim, one token each

    def test_the_budget_ends_it_between_two_parts_and_the_next_run_goes_on(self, tmp_path: Path) -> None:
        clock = iter([False, True])  # another run wants what it holds, once a part is planned
        embedder = Directions(self.of)
        ctx = context(tmp_path, recipe={"pairing": {"kind": "top_k"}}, embedder=embedder, last=NEXT)
        put(ctx, trace("t", "Fruit is good.", CHUNKS), name="0-0")
        put(ctx, trace("u", "Bananas are nice.", CHUNKS, day=NEXT), name="0-1")
        extract_claims(ctx)
        stopped = Budget(wanted=lambda: next(clock))
        assert plan_pairs(replace(ctx, budget=stopped)).tokens_in == 5
        assert stopped.gave_way
        assert {p["trace_id"] for p in rows(ctx, PAIRS)} == {"u"}  # the newest day comes first
        assert plan_pairs(ctx).tokens_in == 5  # of the other part alone
        assert {p["trace_id"] for p in rows(ctx, PAIRS)} == {"t", "u"}


TEXT = st.text(st.sampled_from("Tea is hot. Ünü \n茶“1”"), min_size=0, max_size=200)


@settings(max_examples=15, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=3), st.sampled_from([0, 1, 40, 480]))
def test_every_key_is_the_hash_of_exactly_what_the_judge_reads(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], joint: int
) -> None:
    judge = Watched(lambda request: "unsupported")  # so that joint pairs are asked for as well
    recipe = {"pairing": {"window_words": 20, "joint_words": joint}}
    ctx = context(tmp_path_factory.mktemp("keys"), judge=judge, recipe=recipe)
    put(ctx, trace("t", "Tea is hot [1][2]. Ice — 氷 — is not!", {f"c{i}": t for i, t in enumerate(texts)}))
    extract_claims(ctx)
    plan_pairs(ctx)
    judge_pairs(ctx)
    judge_joint_pairs(ctx)
    assert all([r.key] == list(keys.request_keys(r.shown, [r.hypothesis])) for r in judge.asked)
    assert {r.key for r in judge.asked} == {p["request_key"] for p in rows(ctx, PAIRS)}
    assert len({r.key for r in judge.asked}) == len(judge.asked)


class TestJoint:
    def run(
        self, tmp_path: Path, answer: str, judge: Watched, chunks: dict[str, str] = CHUNKS, joint: int = 6
    ) -> Context:
        ctx = context(tmp_path, judge=judge, recipe={"pairing": {"joint_words": joint}})
        put(ctx, trace("t", answer, chunks))
        extract_claims(ctx)
        plan_pairs(ctx)
        judge_pairs(ctx)
        judge_joint_pairs(ctx)
        return ctx

    def joints(self, ctx: Context) -> list[tuple[str, list[str], bool]]:
        return [
            (p["pair_kind"], [e["chunk_id"] for e in p["evidence"]], p["cited"])
            for p in rows(ctx, PAIRS) if p["pair_kind"] != "single"
        ]  # fmt: skip

    @staticmethod
    def partly(request) -> str:
        """b and d carry a part of the claim each, the others nothing; together they carry it."""
        parts = sum(word in request.premise for word in ("Bananas", "Dates"))
        return ["unsupported", "partially_supported", "supported"][parts]

    def test_the_best_chunks_are_shown_together_when_none_suffices(self, tmp_path: Path) -> None:
        ctx = self.run(tmp_path, "Bananas and dates grow.", judge := Watched(self.partly))
        assert self.joints(ctx) == [("joint", ["b", "d"], False)]
        assert judge.asked[-1].premise == "Bananas are yellow.\n\nDates are sweet."

    def test_the_cited_ones_are_shown_together_too(self, tmp_path: Path) -> None:
        ctx = self.run(tmp_path, "Bananas and dates grow [1][3].", Watched(self.partly))
        assert self.joints(ctx) == [("joint", ["b", "d"], False), ("joint_cited", ["a", "c"], True)]

    def test_one_look_serves_both_where_the_best_are_the_cited(self, tmp_path: Path) -> None:
        ctx = self.run(tmp_path, "Bananas and dates grow [2][4].", Watched(self.partly))
        assert self.joints(ctx) == [("joint", ["b", "d"], True)]

    def test_a_supported_claim_and_a_single_chunk_need_none(self, tmp_path: Path) -> None:
        assert self.joints(self.run(tmp_path, "Bananas grow.", Watched())) == []
        other = tmp_path / "other"
        other.mkdir()
        assert self.joints(self.run(other, "Bananas grow.", Watched(self.partly), {"b": CHUNKS["b"]})) == []

    def test_none_where_the_config_says_so(self, tmp_path: Path) -> None:
        ctx = self.run(tmp_path, "Bananas and dates grow.", Watched(self.partly), joint=0)
        assert self.joints(ctx) == []
        again = tmp_path / "again"
        again.mkdir()
        ctx = self.run(again, "Bananas and dates grow [1][2].", Watched(self.partly), joint=0)
        # All that is cited is always read together, the best first: b carries a part of the claim.
        assert self.joints(ctx) == [("joint_cited", ["b", "a"], True)]

    def test_looks_of_gives_first_looks_first(self, tmp_path: Path) -> None:
        ctx = self.run(tmp_path, "Bananas and dates grow.", Watched(self.partly))
        (part,) = trace_parts(ctx)
        assert part.date == DAY
        assert [p.name for p in pair_parts(ctx, part, ctx.judges[0])] == [part.name, f"{part.name}-joint"]
