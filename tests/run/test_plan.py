"""How a follow-up question is read: behind the earlier questions of its conversation."""

from datetime import timedelta
from pathlib import Path

from kit.stage_kit import DAY, Directions, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import CLAIMS
from tasks.judging.relevance import score_relevance

LEAVE, PART_TIME, YEAR = (
    "How many days of leave do employees get?",
    "And part-time staff?",
    "Do they expire at year end?",
)


def asked(tmp_path: Path, earlier_questions: int) -> tuple[list[str], dict[str, str]]:
    """The texts that relevance embeds, and the hypothesis of each trace's claim. Rows come in another order than they were asked."""
    embedder = Directions()
    ctx = context(tmp_path, embedder=embedder, recipe={"earlier_questions": earlier_questions})
    night = str(DAY - timedelta(days=1))
    put(
        ctx,
        trace("t3", "Yes.", question=YEAR, session="s", timestamp=f"{DAY}T12:02:00Z"),
        trace("t2", "Yes.", question=PART_TIME, session="s", timestamp=f"{DAY}T12:01:00Z"),
        trace("other", "Yes.", question=PART_TIME, session="another", timestamp=f"{DAY}T12:01:30Z"),
        trace("app", "Yes.", question="Why?", session="s", app="b", timestamp=f"{DAY}T12:01:30Z"),
        trace("alone", "Yes.", question="Is it hot?", timestamp=f"{DAY}T12:01:30Z"),
        trace("t4", "Yes.", question="Is tea hot?", session="s", timestamp=f"{DAY}T12:03:00Z"),
    )
    put(ctx, trace("t1", "Ten.", question=LEAVE, session="s", timestamp=f"{night}T23:59:00Z"))
    extract_claims(ctx)
    score_relevance(ctx)
    return embedder.read, {r["trace_id"]: r["hypothesis"] for r in rows(ctx, CLAIMS)}


def test_a_follow_up_is_read_behind_the_questions_before_it(tmp_path: Path) -> None:
    shown, claims = asked(tmp_path, 2)
    assert {f"{LEAVE} {PART_TIME}", f"{LEAVE} {PART_TIME} {YEAR}", PART_TIME, "Why?", "Is it hot?", "Is tea hot?"} <= {
        *shown
    }
    assert YEAR not in shown
    assert claims["t3"].startswith(f"{LEAVE} {PART_TIME} {YEAR}")
    assert claims["t4"].startswith("Is tea hot?")  # which stands on its own


def test_only_as_many_as_asked_for(tmp_path: Path) -> None:
    shown, _ = asked(tmp_path, 1)
    assert f"{PART_TIME} {YEAR}" in shown
    assert f"{LEAVE} {PART_TIME} {YEAR}" not in shown


def test_none_by_default(tmp_path: Path) -> None:
    shown, claims = asked(tmp_path, 0)
    assert {YEAR, PART_TIME} <= {*shown}
    assert claims["t3"].startswith(YEAR)


def test_it_is_part_of_the_versions(tmp_path: Path) -> None:
    none, one, two = (context(tmp_path, recipe={"earlier_questions": n}) for n in (0, 1, 2))
    assert len({ctx.extractor.version for ctx in (none, one, two)}) == 3
    assert len({scorer.version for ctx in (none, one, two) for scorer in ctx.scorers}) == 3 * len(none.scorers)
    assert len({ctx.recipe for ctx in (none, one, two)}) == 3
