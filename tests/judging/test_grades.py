"""Grades in the nightly: rows in and rows out, what is asked again and what never is, and what enters a mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from kit.stage_kit import DAY, NEXT, context, put, rows, trace

from flows.judges.versions import retire_
from tasks import graders
from tasks.claims.extract import extract_claims
from tasks.core.budget import Budget
from tasks.core.errors import ConfigError, EngineError, UsageError
from tasks.core.grades import GRADED, GRADES, Answered, Grade, Statement
from tasks.core.schemas import GRADES as TABLE
from tasks.core.schemas import JUDGES, NIGHTLY_GRADES, RECIPES
from tasks.core.types import OUTAGE
from tasks.graders import constant
from tasks.judging.estimate import estimate
from tasks.judging.grades import grade_answers
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.privacy.retention import Due, redact
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.scopes.promotions import RETIRE, Promotion, add
from tasks.run.scopes.scope import DateRange, Scope
from tasks.scoring.nightly import aggregate_nights, complete
from tasks.scoring.score import score_traces
from tasks.stats.intervals import interval, means
from tasks.store.lake import from_rows

GOOD = {"answer_relevancy": 5, "completeness": 4, "faithfulness": 1, "usefulness": None}
CHUNKS = {"a": "Water boils at one hundred degrees.", "b": "Tea is made with hot water."}


def given(values: Mapping[str, float | None], **others: Grade) -> dict[str, Grade]:
    """Grades of these values, None for N/A, and others as they are; three tokens each."""
    own = {n: Grade("na") if v is None else Grade("scored", v, explanation=f"It is {v}.") for n, v in values.items()}
    return {n: replace(g, tokens_in=2, tokens_out=1) for n, g in {**own, **others}.items()}


@dataclass
class Grading:
    """A grader that answers by a rule and keeps what it was asked; it is down after `up_for` calls."""

    rule: Callable[[Answered], Mapping[str, Grade]] = lambda answered: given(GOOD)
    version: str = "89abcdef01234567"
    engine: str = "watched"
    gpus: int = 0
    asks: bool = True
    needs_reference: bool = False
    up_for: int | None = None
    calls: list[list[Answered]] = field(default_factory=list)
    closed: int = 0

    @property
    def asked(self) -> list[str]:
        return [a.question for call in self.calls for a in call]

    def describe(self) -> dict[str, object]:
        return {"kind": "watched"}

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        if self.up_for is not None and len(self.calls) >= self.up_for:
            raise EngineError("the model is down. Start it.")
        self.calls.append(list(answers))
        return [self.rule(a) for a in answers]

    def close(self) -> None:
        self.closed += 1


def graded_by(root: Path, grader: Any, **settings: Any) -> Context:
    """A context whose recipe names a grader, with another one in its place."""
    (root / "grader.yaml").write_text(yaml.safe_dump({"kind": "constant", "grades": GOOD}))
    recipe = {"grades": {"grader": "grader.yaml"}, **settings.pop("recipe", {})}
    return replace(context(root, recipe=recipe, **settings), grader=grader)


def ready(ctx: Context, *traces: dict[str, Any]) -> Context:
    put(ctx, *traces)
    extract_claims(ctx)
    plan_pairs(ctx)
    return ctx


def tea(trace_id: str, **more: Any) -> dict[str, Any]:
    """A trace whose question is its id."""
    return trace(trace_id, chunks=CHUNKS, question=trace_id, **more)


def grades(ctx: Context) -> dict[tuple[str, str], tuple[str, float | None]]:
    """By trace and grade, its status and value; fails on a row that is there twice."""
    found = rows(ctx, TABLE)
    by = {(r["trace_id"], r["grade"]): (r["status"], r["value"]) for r in found}
    assert len(by) == len(found)
    return by


def finish(ctx: Context) -> dict[str, dict[str, Any]]:
    """The rest of the night; its rows of `nightly_grades` by grade."""
    for stage in (judge_pairs, judge_joint_pairs, score_relevance, score_traces, aggregate_nights):
        stage(ctx)
    return {r["grade"]: r for r in rows(ctx, NIGHTLY_GRADES, ctx.recipe)}


class TestRows:
    def test_six_for_each_answer(self, tmp_path: Path) -> None:
        ctx = ready(graded_by(tmp_path, Grading()), tea("t1"), tea("t2"), trace("t3", chunks={}))
        done = grade_answers(ctx)
        assert (done.stage, done.computed, done.reused, done.lost) == ("grades", 18, 0, 0)
        assert (done.tokens_in, done.tokens_out) == (3 * 4 * 2, 3 * 4)  # the derived ones cost nothing
        assert {(t, g) for t in ("t1", "t2", "t3") for g in GRADES} == set(grades(ctx))
        # relevancy and completeness are scored, so the answer rightly claims to have one; there is nothing to decline
        assert grades(ctx)["t1", "positive_acceptance"] == ("scored", 1)
        assert grades(ctx)["t1", "negative_rejection"] == ("na", None)
        by = {r["grade"]: r for r in rows(ctx, TABLE) if r["trace_id"] == "t2"}
        assert (by["completeness"]["explanation"], by["completeness"]["engine"]) == ("It is 4.", "watched")
        assert (by["completeness"]["tokens_in"], by["positive_acceptance"]["tokens_in"]) == (2, 0)
        assert {r["extractor_version"] for r in by.values()} == {ctx.extractor.version}
        assert ctx.grader.closed == 1  # type: ignore[union-attr]

    def test_it_is_given_what_the_extractor_cut(self, tmp_path: Path) -> None:
        grader = Grading()
        ctx = graded_by(tmp_path, grader)
        answer = "**Tea** is hot [2][1]. It is wet [9]. It is brown."
        chunks = dict(zip("12", CHUNKS.values(), strict=True))
        ready(ctx, trace("t", answer, chunks, reference_answer="Tea is hot."))
        grade_answers(ctx)
        ((answered,),) = grader.calls
        assert (answered.question, answered.answer) == ("How hot is tea?", answer)
        assert answered.passages == tuple(CHUNKS.values())
        assert answered.reference is None  # the nightly's grades don't depend on what a log happens to hold
        # numbers of the chunks in the trace's order; `9` names none
        assert answered.statements == (
            Statement("Tea is hot", (1, 2)),  # up to its references
            Statement("It is wet", (), 1),
            Statement("It is brown."),
        )

    def test_a_recipe_without_a_grader_has_none(self, tmp_path: Path) -> None:
        ctx = ready(context(tmp_path), tea("t"))
        assert grade_answers(ctx).computed == 0
        assert finish(ctx) == {}
        assert rows(ctx, TABLE) == []

    @pytest.mark.parametrize(
        "wrong",
        [
            Grade("scored"),
            Grade("scored", 6),
            Grade("scored", 0),
            Grade("na", 3),
            Grade("failed"),
            Grade("na", None, "x"),
        ],
    )
    def test_a_grade_that_makes_no_sense_is_a_failure(self, tmp_path: Path, wrong: Grade) -> None:
        """A value exactly where it is scored, from 1 to 5; a reason exactly where it is unparsable or failed."""
        ctx = ready(graded_by(tmp_path, Grading(lambda _: given(GOOD, completeness=wrong))), tea("t"))
        grade_answers(ctx)
        assert grades(ctx)["t", "completeness"] == ("failed", None)
        assert grades(ctx)["t", "positive_acceptance"] == ("failed", None)  # it would follow from it
        assert grades(ctx)["t", "faithfulness"] == ("scored", 1)
        assert {r["failure"] for r in rows(ctx, TABLE) if r["status"] == "failed"} <= {"invalid_grade", "x"}


MIXED = {  # by question
    "good": given(GOOD),
    "worse": given({**GOOD, "answer_relevancy": 2, "faithfulness": 0}),
    "declines": given({"answer_relevancy": None, "completeness": None, "faithfulness": None, "usefulness": 0}),
    "garbled": given(GOOD, answer_relevancy=Grade("unparsable", failure="not_json", raw="Five!")),
    "silent": given(GOOD, answer_relevancy=Grade("failed", failure="truncated", raw="…")),
}


def test_only_what_is_scored_is_averaged(tmp_path: Path) -> None:
    ctx = ready(graded_by(tmp_path, Grading(lambda a: MIXED[a.question])), *(tea(name) for name in MIXED))
    grade_answers(ctx)
    night = finish(ctx)
    assert set(night) == set(GRADES)
    counts = ("n", "n_scored", "n_na", "n_unparsable", "n_failed", "n_ungraded")
    relevancy = night["answer_relevancy"]
    assert [relevancy[c] for c in counts] == [5, 2, 1, 1, 1, 0]
    assert relevancy["grade_mean"] == 3.5  # of 5 and 2
    ends = interval(means(np.array([5.0, 2.0]), np.ones(2)), 1, 5)
    assert (relevancy["grade_low"], relevancy["grade_high"]) == pytest.approx(ends, abs=1e-6)
    assert [night["completeness"][c] for c in counts] == [5, 4, 1, 0, 0, 0]
    assert night["completeness"]["grade_mean"] == 4
    assert night["faithfulness"]["grade_mean"] == 0.75
    assert [night["usefulness"][c] for c in counts] == [5, 1, 4, 0, 0, 0]
    # `good` and `worse` have an answer where there is one; `declines` declines where there is none
    assert [night["positive_acceptance"][c] for c in counts] == [5, 2, 1, 1, 1, 0]
    assert [night["negative_rejection"][c] for c in counts] == [5, 1, 2, 1, 1, 0]
    assert {r["grader_version"] for r in night.values()} == {ctx.grader.version}  # type: ignore[union-attr]

    (recipe,) = rows(ctx, RECIPES)
    assert recipe["grader_version"] == ctx.grader.version  # type: ignore[union-attr]
    (judge,) = [r for r in rows(ctx, JUDGES) if r["judge_version"] == recipe["grader_version"]]
    assert (judge["name"], judge["kind"]) == ("grader", "watched")


class TestMissing:
    def test_nothing_is_graded_twice(self, tmp_path: Path) -> None:
        grader = Grading()
        ctx = ready(graded_by(tmp_path, grader), tea("t1"), tea("t2"))
        grade_answers(ctx)
        night = finish(ctx)
        again = grade_answers(ctx)
        assert (again.computed, again.reused, len(grader.calls)) == (0, 12, 1)
        assert aggregate_nights(ctx).reused == 1
        put(ctx, tea("t3"), name="1111111111111111-00000")  # a late file
        extract_claims(ctx)
        plan_pairs(ctx)
        assert grade_answers(ctx).computed == 6
        assert grader.asked == ["t1", "t2", "t3"]
        assert (night["usefulness"]["n"], finish(ctx)["usefulness"]["n"]) == (2, 3)

    def test_an_outage_keeps_what_is_done_and_the_next_run_asks_for_the_rest(self, tmp_path: Path) -> None:
        grader = Grading(up_for=1)
        # a shard of eight requests is two answers
        ctx = ready(graded_by(tmp_path, grader, limits={"shard_requests": 8}), *(tea(f"t{n}") for n in range(5)))
        with pytest.raises(EngineError):
            grade_answers(ctx)
        assert {t for t, _ in grades(ctx)} == {"t0", "t1"}
        night = finish(ctx)  # another stage's numbers don't wait for it
        assert [night["faithfulness"][c] for c in ("n", "n_scored", "n_ungraded")] == [5, 2, 3]
        assert complete(ctx, DAY)
        grader.up_for = None
        done = grade_answers(ctx)
        assert (done.computed, done.reused) == (18, 12)
        assert grader.asked == [f"t{n}" for n in range(5)]
        assert finish(ctx)["faithfulness"]["n_scored"] == 5  # the night is made again

    def test_a_request_that_could_not_be_asked_is_not_stored(self, tmp_path: Path) -> None:
        lost = Grade("failed", failure=OUTAGE)
        grader = Grading(lambda a: given(GOOD, **({"completeness": lost} if a.question == "t2" else {})))
        ctx = ready(graded_by(tmp_path, grader), tea("t1"), tea("t2"))
        done = grade_answers(ctx)
        # of t2, neither completeness nor what follows from it is known
        assert (done.computed, done.lost) == (6 + 3, 1)
        assert done.notes == ("1 requests could not be made (outage); the next run makes them again.",)
        assert {g for t, g in grades(ctx) if t == "t2"} == {*GRADED} - {"completeness"}
        before = grades(ctx)
        grader.rule = lambda a: given(dict.fromkeys(GRADED, 1))  # whatever it says now of what is known does not count
        assert grade_answers(ctx).computed == 3
        assert grader.asked == ["t1", "t2", "t2"]
        assert {key: value for key, value in grades(ctx).items() if key in before} == before
        assert grades(ctx)["t2", "completeness"] == ("scored", 1)
        assert grades(ctx)["t2", "positive_acceptance"] == ("scored", 1)

    def test_failures_are_graded_again_when_that_is_asked_for(self, tmp_path: Path) -> None:
        grader = Grading(lambda a: MIXED[a.question])
        ctx = ready(graded_by(tmp_path, grader), *(tea(name) for name in MIXED))
        grade_answers(ctx)
        first = finish(ctx)["answer_relevancy"]
        before = grades(ctx)
        assert grade_answers(ctx).computed == 0
        grader.rule = lambda a: given(dict.fromkeys(GRADED, 1))
        done = grade_answers(ctx, retry_failures=True)
        assert grader.asked[5:] == ["garbled", "silent"]
        assert done.computed == 2 * 3  # relevancy, acceptance and rejection of both
        after = grades(ctx)
        assert {k: v for k, v in after.items() if before[k][0] in ("scored", "na")} == {
            k: v for k, v in before.items() if v[0] in ("scored", "na")
        }
        assert {after[t, "answer_relevancy"] for t in ("garbled", "silent")} == {("scored", 1)}
        again = finish(ctx)["answer_relevancy"]
        assert [(r["n_scored"], r["n_unparsable"], r["n_failed"]) for r in (first, again)] == [(2, 1, 1), (4, 0, 0)]

    def test_a_failure_of_another_kind_changes_the_night(self, tmp_path: Path) -> None:
        grader = Grading(lambda _: MIXED["garbled"])
        ctx = ready(graded_by(tmp_path, grader), tea("t"))
        grade_answers(ctx)
        assert finish(ctx)["answer_relevancy"]["n_unparsable"] == 1
        grader.rule = lambda _: MIXED["silent"]
        grade_answers(ctx, retry_failures=True)
        night = finish(ctx)["answer_relevancy"]
        assert (night["n_unparsable"], night["n_failed"]) == (0, 1)

    def test_a_budget_stops_it_between_two_shards(self, tmp_path: Path) -> None:
        grader = Grading()
        ctx = ready(graded_by(tmp_path, grader, limits={"shard_requests": 4}), *(tea(f"t{n}") for n in range(3)))
        grade_answers(replace(ctx, budget=Budget(tokens=20)))  # an answer takes twelve
        assert grader.asked == ["t0", "t1"]
        assert grade_answers(ctx).computed == 6
        assert grader.asked == ["t0", "t1", "t2"]

    def test_two_runs_at_once_store_each_grade_once(self, tmp_path: Path) -> None:
        grader, other = Grading(), Grading()
        ctx = ready(graded_by(tmp_path, grader), tea("t1"), tea("t2"))

        def meanwhile(_: Answered) -> Mapping[str, Grade]:
            if not other.calls:
                grade_answers(replace(ctx, grader=other))
            return given(GOOD)

        grader.rule = meanwhile
        grade_answers(ctx)
        assert len(grades(ctx)) == 12
        assert grade_answers(ctx).computed == 0


class TestSharing:
    def test_a_recipe_with_the_same_grader_finds_them_done(self, tmp_path: Path) -> None:
        grader = Grading()
        one = ready(graded_by(tmp_path, grader), tea("t"))
        other = graded_by(tmp_path, grader, recipe={"name": "other", "scoring": {"misuse_penalty": 1}})
        assert one.recipe != other.recipe
        plan_pairs(other)
        assert grade_answers(one).computed == 6
        assert (grade_answers(other).computed, len(grader.calls)) == (0, 1)
        assert finish(one)["faithfulness"]["n_scored"] == finish(other)["faithfulness"]["n_scored"] == 1

    def test_other_statements_are_graded_by_themselves(self, tmp_path: Path) -> None:
        """Another extractor cuts other statements: what was said of the one's is not taken for the other's."""
        grader = Grading(lambda a: given({**GOOD, "faithfulness": len(a.statements) - 1}))
        sentences = ready(graded_by(tmp_path, grader), trace("t", "Tea is hot. It is wet.", CHUNKS))
        segments = graded_by(tmp_path, grader, recipe={"extractor": {"kind": "segments"}})
        extract_claims(segments)
        plan_pairs(segments)
        assert grade_answers(sentences).computed == grade_answers(segments).computed == 6
        assert finish(sentences)["faithfulness"]["grade_mean"] == 1
        assert finish(segments)["faithfulness"]["grade_mean"] == 0  # one segment

    def test_a_sample_is_graded_for_a_sample_and_the_rest_for_the_rest(self, tmp_path: Path) -> None:
        grader = Grading()
        ctx = graded_by(tmp_path, grader)
        ready(replace(ctx, scope=Scope(apps=("help",))), tea("t1"), tea("t2", app="help"))
        few = replace(ctx, scope=Scope(apps=("help",)))
        assert grade_answers(few).computed == 6
        assert grade_answers(few).computed == 0
        assert finish(few)["usefulness"]["n"] == 1
        plan_pairs(ctx)  # for all, now
        assert grade_answers(ctx).computed == 6
        assert grader.asked == ["t2", "t1"]
        finish(ctx)
        assert [r["n"] for r in rows(ctx, NIGHTLY_GRADES) if r["grade"] == "usefulness"] == [1, 1]  # of each app

    def test_recipes_of_a_run_share_their_grader(self, tmp_path: Path) -> None:
        graded_by(tmp_path, Grading())
        config = yaml.safe_load((tmp_path / "nightly.yaml").read_text())
        one = config.pop("recipe")
        config["recipes"] = [
            one,
            {**one, "name": "other", "scoring": {"misuse_penalty": 1}},
            {"name": "bare", "judge": "judge.yaml"},
        ]
        (tmp_path / "nightly.yaml").write_text(yaml.safe_dump(config))
        first, second, bare = build_contexts(tmp_path / "nightly.yaml", DAY, DAY)
        assert first.grader is second.grader is not None
        assert isinstance(first.grader, constant.Constant)
        assert bare.grader is None
        assert first.definition["grades"] == {"grader": first.grader.version}


def test_a_text_that_is_gone_is_not_graded_and_its_grades_stay(tmp_path: Path) -> None:
    grader = Grading(lambda a: MIXED["garbled" if a.question == "t2" else "good"])
    ctx = ready(graded_by(tmp_path, grader), tea("t1"), tea("t2"), tea("t3", day=DAY))
    grade_answers(ctx)
    before = grades(ctx)
    assert {r["raw"] for r in rows(ctx, TABLE)} == {None, "Five!"}
    done = {s.stage: s.computed for s in redact(ctx.lake, Due(traces=frozenset({"t2"})), datetime.now(UTC))}
    assert done["explanations"] == 3  # completeness and faithfulness have reasons, relevancy a reply
    assert {r["trace_id"] for r in rows(ctx, TABLE) if r["explanation"] or r["raw"]} == {"t1", "t3"}
    assert grades(ctx) == before
    assert grade_answers(ctx, retry_failures=True).computed == 0  # nothing is asked of it again
    assert grades(ctx) == before
    redact(ctx.lake, Due(explanations=NEXT), datetime.now(UTC))
    assert {r["trace_id"] for r in rows(ctx, TABLE) if r["explanation"] or r["raw"]} == set()
    assert grades(ctx) == before


def test_the_estimate_counts_what_is_then_done(tmp_path: Path) -> None:
    grader = Grading(asks=False, up_for=1)
    ctx = ready(graded_by(tmp_path, grader, limits={"shard_requests": 4}), *(tea(f"t{n}") for n in range(3)))
    assert (estimate(ctx).answers, estimate(ctx).requests) == (3, ())
    grader.asks = True
    assert estimate(ctx).answers is None
    (asking,) = estimate(ctx).requests
    shown = len("t0") + len("Tea is hot.") + sum(map(len, CHUNKS.values()))
    assert (asking.stage, asking.requests, asking.tokens) == ("grades", 3 * 4, 3 * 4 * shown // 4)
    other = graded_by(tmp_path, grader, recipe={"scoring": {"misuse_penalty": 1}})
    plan_pairs(other)
    assert estimate(ctx, other).requests == (asking,)  # shared
    # of two judges that count for nights or applications of their own, each has answers of its own to be graded
    nights = (replace(other, days=DateRange(None, DAY)), replace(ctx, last=NEXT, days=DateRange(NEXT, None)))
    put(ctx, tea("t9", day=NEXT))
    extract_claims(nights[1])
    plan_pairs(nights[1])
    assert [a.requests for a in estimate(*nights).requests] == [4 * 4]
    assert estimate(*nights).relevance == estimate(nights[0]).relevance + estimate(nights[1]).relevance == 4 * 4
    with pytest.raises(EngineError):
        grade_answers(ctx)
    assert estimate(ctx).requests[0].requests == 2 * 4
    ungraded = context(tmp_path)
    plan_pairs(ungraded)
    assert (estimate(ungraded).answers, estimate(ungraded).requests) == (None, ())


def test_a_grader_that_needs_a_reference_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant.Constant, "needs_reference", True)
    with pytest.raises(ConfigError) as caught:
        graded_by(tmp_path, Grading())
    assert str(caught.value) == (
        f"{tmp_path / 'nightly.yaml'}: recipe.grades.grader is {tmp_path / 'grader.yaml'}, which grades by a reference "
        "answer. Logs of production have none: name a grader that needs no reference."
    )


def test_a_retired_grader_is_refused_and_one_that_is_named_is_not_retired(tmp_path: Path) -> None:
    ctx = graded_by(tmp_path, Grading())
    config, grader = tmp_path / "nightly.yaml", graders.load(tmp_path / "grader.yaml")
    row = {"judge_version": grader.version, "name": "grader", "kind": "constant", "definition": "{}"}
    ctx.lake.write(JUDGES, grader.version, from_rows([row], JUDGES))
    with pytest.raises(UsageError, match=r"grader .* is what tonight's run takes for recipe claims"):
        retire_("grader", "worse", config)
    gone = Promotion(datetime.now(UTC), RETIRE, None, None, "grader", grader.version, None, None, "worse")
    add(ctx.lake, gone)
    with pytest.raises(UsageError, match=rf"grader\.yaml: judge 'grader', version {grader.version}, was retired on"):
        build_contexts(config, DAY, DAY)


@pytest.mark.parametrize(
    ("grader", "message"),
    [
        ("none.yaml", r"none\.yaml does not exist"),
        ("judge.yaml", r"judge\.yaml: kind is 'replay', which is no kind of grader"),
    ],
)
def test_mistakes_name_the_graders_file(tmp_path: Path, grader: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        context(tmp_path, recipe={"grades": {"grader": grader}})
