"""All chunks together, in packs: what is shown at once, and what becomes of claims that cite."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from kit.stage_kit import Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.schemas import CLAIM_RESULTS, PAIRS, VERDICTS
from tasks.core.types import Request, Verdict
from tasks.judging.pairs import packs, plan_pairs
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.scoring.score import score_traces
from tasks.text.windows import word_count

CHUNKS = {"a": "Apples are red.", "b": "Bananas are yellow.", "c": "Cherries are small.", "d": "Dates are sweet."}


def packed(root: Path, judge: Watched | None = None, **pairing: int) -> Context:
    return context(root, judge=judge, recipe={"pairing": {"kind": "all_chunks", "window_words": 20, **pairing}})


def shown_pairs(ctx: Context) -> list[tuple[str, str, bool]]:
    """Look, the chunks of its windows, cited: of every pair in order."""
    return [(p["pair_kind"], "".join(e["chunk_id"] for e in p["evidence"]), p["cited"]) for p in rows(ctx, PAIRS)]


def run(ctx: Context, *traces: dict) -> Context:
    put(ctx, *traces)
    for stage in (extract_claims, plan_pairs, judge_pairs, judge_joint_pairs):
        stage(ctx)
    return ctx


def naming(request: Request) -> Verdict:
    """Supported by every passage that has a word of the claim, which it names."""
    names = {w for w in request.hypothesis.rstrip(".").split() if w[0].isupper()}
    found = [n for n, text in enumerate(request.shown, start=1) if names & set(text.split())]
    if not found:
        return Verdict("", "unsupported", p_supported=0.1, p_contradicted=0.1)
    return Verdict("", "supported", p_supported=0.9, p_contradicted=0.0, passages=tuple(found))


class TestPlan:
    def test_all_chunks_of_a_trace_are_one_look(self, tmp_path: Path) -> None:
        judge = Watched()
        ctx = run(packed(tmp_path, judge), trace("t", "Tea is hot.\n\nIce is not [1][2][3][4].", CHUNKS))
        assert shown_pairs(ctx) == [("pack", "abcd", False), ("pack", "abcd", True)]
        assert judge.asked[0].passages == tuple(CHUNKS.values())
        assert judge.asked[0].premise == "\n\n".join(CHUNKS.values())

    def test_more_words_than_fit_make_more_packs_and_one_window_alone_is_single(self, tmp_path: Path) -> None:
        # windows of at most 20 words: 18 and 18 of chunk a, 3 of b; 40 words hold the first two and b, 20 the rest
        long = "Apples " + "and so on " * 5 + "are red. " + "Pears " + "and so on " * 5 + "are green."
        chunks = {"a": long, "b": CHUNKS["b"], "c": "Cherries " + "and so on " * 5 + "are small."}
        judge = Watched()
        ctx = run(packed(tmp_path, judge, pack_words=40), trace("t", "Tea is hot.", chunks))
        assert shown_pairs(ctx) == [("pack", "aab", False), ("single", "c", False)]
        assert sorted(len(r.passages) for r in judge.asked) == [0, 3]
        assert {r.premise for r in judge.asked if not r.passages} == {chunks["c"]}

    def test_a_trace_with_one_short_chunk_has_a_single_look(self, tmp_path: Path) -> None:
        assert shown_pairs(run(packed(tmp_path), trace("t", "Tea is hot.", {"a": "Tea."}))) == [("single", "a", False)]

    def test_neither_chunks_nor_claims_no_look(self, tmp_path: Path) -> None:
        assert shown_pairs(run(packed(tmp_path), trace("t", "Tea is hot.", {}), trace("u", "# Tea", CHUNKS))) == []

    @settings(max_examples=60)
    @given(st.lists(st.integers(1, 12), max_size=8), st.integers(1, 20))
    def test_packs_hold_all_windows_in_order_and_no_more_words_than_allowed(self, sizes: list[int], most: int) -> None:
        texts = {f"c{i}": " ".join(["word"] * n) for i, n in enumerate(sizes)}
        windows = [(chunk, 0, len(text)) for chunk, text in texts.items()]
        made = list(packs(windows, texts, most))
        assert [w for pack in made for w in pack] == windows
        assert all(pack for pack in made)
        counted = [sum(word_count(texts[c]) for c, _, _ in pack) for pack in made]
        assert all(n <= most or len(pack) == 1 for n, pack in zip(counted, made, strict=True))
        # and none that the one before had room for
        assert all(n + word_count(texts[after[0][0]]) > most for n, after in zip(counted, made[1:], strict=False))

    def test_keys_are_those_of_the_passages(self, tmp_path: Path) -> None:
        judge = Watched(naming)
        ctx = run(packed(tmp_path, judge), trace("t", "Apples grow [2]. Figs grow [1].", CHUNKS))
        assert all([r.key] == list(keys.request_keys(r.shown, [r.hypothesis])) for r in judge.asked)
        assert {r.key for r in judge.asked} == {p["request_key"] for p in rows(ctx, PAIRS)}


class TestCitations:
    def results(self, root: Path, answer: str, judge: Watched, **pairing: int) -> tuple[Context, list[dict]]:
        ctx = run(packed(root, judge, **pairing), trace("t", answer, CHUNKS))
        score_traces(ctx)
        return ctx, rows(ctx, CLAIM_RESULTS)

    def test_a_named_chunk_decides_and_a_citation_of_it_needs_no_further_look(self, tmp_path: Path) -> None:
        judge = Watched(naming)
        ctx, (found,) = self.results(tmp_path, "Apples and Bananas grow [2][1].", judge)
        assert (found["label"], found["misused"], found["citation_recall"]) == ("supported", False, 1)
        assert found["deciding_chunk_ids"] == ["a", "b"]
        assert len(judge.asked) == 1
        (stored,) = rows(ctx, VERDICTS)
        assert stored["passages"] == [1, 2]

    def test_of_named_chunks_of_which_one_is_not_cited_the_cited_ones_are_seen_alone(self, tmp_path: Path) -> None:
        """A judge names what decides alone or together: it may be that the cited one does not suffice."""
        judge = Watched(naming)
        _, (found,) = self.results(tmp_path, "Apples and Bananas grow [2].", judge)
        assert [r.shown for r in judge.asked[1:]] == [(CHUNKS["b"],)]
        assert (found["label"], found["misused"], found["deciding_chunk_id"]) == ("supported", False, "b")

    def test_misuse_is_stated_only_after_the_cited_chunks_were_seen_alone(self, tmp_path: Path) -> None:
        judge = Watched(naming)
        ctx, (found,) = self.results(tmp_path, "Apples grow [4][2].", judge)
        assert [r.passages for r in judge.asked[1:]] == [(CHUNKS["b"], CHUNKS["d"])]  # in the order of the trace
        assert shown_pairs(ctx)[1:] == [("joint_cited", "bd", True)]
        assert (found["label"], found["misused"], found["deciding_chunk_id"]) == ("supported", True, "a")
        assert found["patterns"] == ["citation_drift"]

    def test_the_cited_chunk_may_support_it_though_another_was_named(self, tmp_path: Path) -> None:
        def first_only(request: Request) -> Verdict:
            found = naming(request)
            return Verdict("", found.label, p_supported=found.p_supported, passages=found.passages[:1])

        judge = Watched(first_only)
        _, (found,) = self.results(tmp_path, "Apples and Bananas grow [2].", judge)
        assert (judge.asked[1].premise, judge.asked[1].passages) == (CHUNKS["b"], ())
        assert (found["misused"], found["deciding_chunk_id"]) == (False, "b")
        assert found["cited_support"] == [{"chunk_id": "b", "label": "supported", "p_supported": 0.9}]

    def test_what_no_pack_supports_is_misused_without_a_look_more(self, tmp_path: Path) -> None:
        judge = Watched(naming)
        _, (found,) = self.results(tmp_path, "Figs grow [1].", judge)
        assert (found["label"], found["misused"], len(judge.asked)) == ("unsupported", True, 1)

    def test_cited_chunks_that_fit_no_single_pack_are_checked_in_several(self, tmp_path: Path) -> None:
        # 20 words a pack: with windows of 18, each chunk is one; the citation covers two that don't name the claim
        chunks = {c: f"{t[:-1]} {'and so on ' * 5}always." for c, t in CHUNKS.items()}
        judge = Watched(naming)
        ctx = run(packed(tmp_path, judge, pack_words=42), trace("t", "Apples grow [2][3][4].", chunks))
        assert shown_pairs(ctx) == [
            ("pack", "ab", False), ("pack", "cd", True), ("joint_cited", "bc", True), ("joint_cited", "d", True),
        ]  # fmt: skip

    def test_parts_of_a_claim_from_two_packs_are_joined(self, tmp_path: Path) -> None:
        chunks = {c: f"{t[:-1]} {'and so on ' * 5}always." for c, t in CHUNKS.items()}

        def partly(request: Request) -> Verdict:
            found = naming(request)
            label = found.label if len(found.passages) != 1 else "partially_supported"
            return Verdict("", label, p_supported=0.5, p_contradicted=0.0, passages=found.passages)

        judge = Watched(partly)
        ctx = run(packed(tmp_path, judge, pack_words=42), trace("t", "Apples and Dates grow.", chunks))
        assert shown_pairs(ctx) == [("pack", "ab", False), ("pack", "cd", False), ("joint", "ad", False)]
        score_traces(ctx)
        (found,) = rows(ctx, CLAIM_RESULTS)
        assert (found["label"], sorted(found["deciding_chunk_ids"])) == ("supported", ["a", "d"])


def test_a_check_that_shows_what_another_claim_was_shown_at_first_is_paid_for_once(tmp_path: Path) -> None:
    judge = Watched(naming)
    run(
        packed(tmp_path, judge),
        trace("t", "Apples grow [2].", CHUNKS),
        trace("u", "Apples grow [1].", {"z": CHUNKS["b"]}),
    )
    assert len(judge.asked) == len({r.key for r in judge.asked}) == 2  # the pack, and chunk b in both places
