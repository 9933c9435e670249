"""A nightly and a backfill on the same parts at the same moment: neither takes away what the other has made."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kit.stage_kit import DAY, Directions, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.errors import EngineError
from tasks.core.schemas import CLAIMS, PAIRS, RELEVANCE
from tasks.extractors import ByApp
from tasks.judging.claims import planned_scopes
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_by, score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.scopes.scope import ALL, Scope
from tasks.scoring.backfill import Day
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces
from tasks.store.lake import Lake

SHOP, HELP = Scope(("shop",)), Scope(("help",))


def past(ctx: Context, **changes: Any) -> Context:
    """The context of a backfill of the same recipe."""
    return replace(ctx, lake=Lake(ctx.lake.root, writer="backfill"), **changes)


class Interrupting(Directions):
    """An embedder during whose first call another writer works, and which may be down from the second call on."""

    def __init__(self, *, down: bool = True) -> None:
        super().__init__()
        self.calls, self.down = 0, down
        self.other: Callable[[], object] = int

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.calls > 1 and self.down:
            raise EngineError("the model is down. Start it.")
        if self.calls == 1:
            self.other()
        return super().embed(texts)


def test_traces_that_another_has_planned_meanwhile_stay_planned(tmp_path: Path) -> None:
    slow = Interrupting(down=False)
    ctx = context(tmp_path, embedder=slow, recipe={"pairing": {"kind": "top_k"}})
    part = put(ctx, trace("t"), trace("u", app="help"))
    extract_claims(ctx)
    slow.other = lambda: plan_pairs(past(ctx, scope=HELP, embedder=Directions()))
    plan_pairs(replace(ctx, scope=SHOP))
    assert slow.calls > 1  # it planned again
    assert set(planned_scopes(ctx, part)) == {SHOP, HELP}
    assert {p["trace_id"] for p in rows(ctx, PAIRS)} == {"t", "u"}


@dataclass
class Slow:
    """An extractor during whose work another writer works."""

    extractor: ByApp
    other: Callable[[], object]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.extractor, name)

    def extract_many(self, answers: Any) -> Any:
        self.other()
        return self.extractor.extract_many(answers)


def test_claims_that_another_has_cut_meanwhile_stay(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    part = put(ctx, trace("t", "One thing. Another thing."))
    extract_claims(ctx)
    cut = ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, str(DAY))
    assert cut is not None
    # What a model may say the second time: another wording under the same ids.
    other = cut.read().set_column(cut.read().schema.get_field_index("hypothesis"), "hypothesis", [["A.", "B."]])
    ctx.lake.drop(CLAIMS, part.name, ctx.extractor.version, str(DAY))

    def write() -> None:
        ctx.lake.write(CLAIMS, part.name, other, ctx.extractor.version, str(DAY))

    extract_claims(replace(ctx, extractor=Slow(ctx.extractor, write)))
    assert [c["hypothesis"] for c in rows(ctx, CLAIMS)] == ["A.", "B."]


def test_scores_that_another_has_made_meanwhile_stay(tmp_path: Path) -> None:
    limits = {"shard_requests": 1}
    slow = Interrupting()
    ctx, other = context(tmp_path, embedder=slow, limits=limits), past(context(tmp_path, limits=limits))
    put(ctx, trace("t", chunks={"a": "x", "b": "y"}), trace("u"))
    # Answers and chunks, by embedders of one version: both write the same part.
    mine, its = (next(s for s in c.scorers if "answer" in s.kinds) for c in (ctx, other))
    slow.other = lambda: score_by(other, scorer=its)
    score_by(ctx, scorer=mine)  # all that is left after its first shard is there by then: the model is not asked again
    (part,) = ctx.lake.parts(RELEVANCE)
    # t: an answer and two chunks; u: an answer and one chunk.
    assert Counter((r["trace_id"], r["kind"], r["chunk_id"]) for r in part.read().to_pylist()) == {
        ("t", "answer", None): 1, ("t", "context", "a"): 1, ("t", "context", "b"): 1, ("u", "answer", None): 1,
        ("u", "context", "a"): 1,
    }  # fmt: skip
    assert part.inputs() == ""  # nothing is open


def night(ctx: Context) -> None:
    judge_pairs(ctx)
    judge_joint_pairs(ctx)
    score_relevance(ctx)
    score_traces(ctx)
    aggregate_nights(ctx)


def test_a_day_is_complete_when_all_that_is_asked_for_is_scored(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, trace("t"), trace("u", app="help"))
    sample, whole = Day(past(ctx, scope=SHOP), 0), Day(past(ctx, scope=ALL), 0)
    extract_claims(ctx)
    plan_pairs(sample.ctx)
    assert not sample.done
    night(sample.ctx)
    assert sample.done
    plan_pairs(whole.ctx)  # a wider backfill begins, and its budget is spent before it comes to this day
    assert not whole.done
    night(whole.ctx)
    assert whole.done
