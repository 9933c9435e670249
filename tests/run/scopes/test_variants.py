"""Promotions and shadows: which judge counts for which night and application, and what a run makes of it."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.stage_kit import DAY, NEXT, TODAY, put, trace

from tasks import judges
from tasks.claims import extract as claims
from tasks.core.config import load_nightly
from tasks.core.errors import ConfigError, UsageError
from tasks.core.schemas import CURRENT_RECIPES, TRACE_SCORES
from tasks.judging import pairs, verdicts
from tasks.run import plan
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.scopes import promotions
from tasks.run.scopes.promotions import PROMOTE, RETIRE, Promotion
from tasks.run.scopes.scope import ALL, ALWAYS, DateRange, Scope
from tasks.run.scopes.variants import backfill_variants
from tasks.scoring import nightly, score
from tasks.store.lake import Lake

LATER = date(2026, 11, 3)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config whose recipe names `first.yaml`; two more judges lie beside it."""
    for seed, name in enumerate(("first", "second", "third")):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": seed}))
    path = tmp_path / "nightly.yaml"
    settings = {
        "lake": "lake", "warehouse": "leadline.duckdb", "report": {"dir": "report"},
        "sources": [{"kind": "jsonl", "paths": ["logs/*.jsonl"]}], "recipe": {"judge": "first.yaml"},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(settings))
    return path


def version(config: Path, name: str) -> str:
    return judges.load(config.parent / f"{name}.yaml").version


def decide(config: Path, name: str, since: date | None, app: str | None = None, **changes: Any) -> Promotion:
    """Put a promotion on record, later than those before it."""
    lake = Lake(config.parent / "lake")
    at = datetime(2026, 11, 1, 12, len(promotions.log(lake)), tzinfo=UTC)
    made = {
        "promoted_at": at, "action": PROMOTE, "recipe_name": "claims", "app": app, "judge": name,
        "judge_version": version(config, name), "path": f"{name}.yaml", "since": since, "reason": "better", **changes,
    }  # fmt: skip
    promotions.add(lake, Promotion(**made))
    return Promotion(**made)


def contexts(config: Path, first: date = DAY, last: date = DAY) -> list[tuple[str, Scope, DateRange, bool]]:
    found = build_contexts(config, first, last, today=TODAY)
    return [(ctx.judges[0].name, ctx.scope, ctx.days, ctx.shadow) for ctx in found]


def test_without_promotions_the_configs_judge_counts(config: Path) -> None:
    assert contexts(config) == [("first", ALL, ALWAYS, False)]


def test_the_log_keeps_what_was_decided_in_order(config: Path) -> None:
    made = [decide(config, "second", DAY), decide(config, "third", NEXT, "shop")]
    assert list(promotions.log(Lake(config.parent / "lake"))) == made


def test_a_command_that_was_killed_and_run_again_decides_once(config: Path) -> None:
    first = decide(config, "second", DAY)
    decide(config, "second", DAY)
    assert list(promotions.log(Lake(config.parent / "lake"))) == [first]
    decide(config, "third", DAY)  # after another decision the first one is taken again
    decide(config, "second", DAY)
    decide(config, "second", None, action="retire", recipe_name=None, path=None)
    decide(config, "second", DAY)
    log = promotions.log(Lake(config.parent / "lake"))
    assert [(p.action, p.judge) for p in log] == [
        ("promote", "second"), ("promote", "third"), ("promote", "second"), ("retire", "second"), ("promote", "second"),
    ]  # fmt: skip


def test_a_promoted_judge_counts_from_its_night_on(config: Path) -> None:
    decide(config, "second", NEXT)
    assert contexts(config, DAY, DAY) == [("first", ALL, ALWAYS, False)]
    assert contexts(config, NEXT, LATER) == [("second", ALL, ALWAYS, False)]
    # A range over the change is cut there.
    assert contexts(config, DAY, LATER) == [
        ("first", ALL, DateRange(DAY, DAY), False),
        ("second", ALL, DateRange(NEXT, LATER), False),
    ]


def test_of_two_promotions_the_later_night_counts_and_of_one_night_the_later_decision(config: Path) -> None:
    decide(config, "second", NEXT)
    decide(config, "third", DAY)  # decided later, for an earlier night
    assert contexts(config, NEXT, NEXT)[0][0] == "second"
    decide(config, "third", NEXT)
    assert contexts(config, NEXT, NEXT)[0][0] == "third"


def test_an_application_may_have_a_judge_of_its_own(config: Path) -> None:
    decide(config, "second", DAY, "shop")
    assert contexts(config) == [
        ("first", Scope(without=("shop",)), ALWAYS, False),
        ("second", Scope(apps=("shop",)), ALWAYS, False),
    ]
    decide(config, "second", DAY)  # and then it counts for all: they share it
    assert contexts(config) == [("second", ALL, ALWAYS, False)]


def test_an_application_that_is_given_the_judge_of_all_others_shares_their_context(config: Path) -> None:
    decide(config, "first", DAY, "shop")  # what the config names
    assert contexts(config) == [("first", ALL, ALWAYS, False)]
    decide(config, "second", DAY, "help")
    assert contexts(config) == [
        ("first", Scope(without=("help",)), ALWAYS, False),
        ("second", Scope(apps=("help",)), ALWAYS, False),
    ]


def test_promotions_of_another_recipe_say_nothing(config: Path) -> None:
    decide(config, "second", DAY, recipe_name="other")
    assert contexts(config) == [("first", ALL, ALWAYS, False)]


def test_a_file_that_changed_since_it_was_promoted_is_refused(config: Path) -> None:
    decide(config, "second", DAY)
    (config.parent / "second.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": 9}))
    with pytest.raises(UsageError, match=r"second\.yaml is version .* what was promoted .* Restore the file"):
        contexts(config)


def test_a_retired_judge_is_refused_until_it_is_promoted_again(config: Path) -> None:
    decide(config, "first", None, action=RETIRE, recipe_name=None, path=None, reason="noisy")
    with pytest.raises(UsageError, match=r"was retired on 2026-11-01 \(noisy\)"):
        contexts(config)
    decide(config, "first", DAY)
    assert contexts(config) == [("first", ALL, ALWAYS, False)]


@pytest.mark.parametrize("gone", ["retired", "changed", "deleted"])
def test_a_judge_that_counts_no_more_stops_no_night_after_it(config: Path, gone: str) -> None:
    config.write_text(config.read_text() + "limits: {catch_up_days: 1}\n")
    decide(config, "second", DAY)
    decide(config, "third", LATER)
    if gone == "retired":
        decide(config, "second", None, action=RETIRE, recipe_name=None, path=None)
    elif gone == "changed":
        (config.parent / "second.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": 9}))
    else:
        (config.parent / "second.yaml").unlink()
    # A run of LATER catches up with the night before it, for which `second` counted: that stays as it is.
    assert contexts(config, LATER, LATER) == [("third", ALL, DateRange(LATER, LATER), False)]
    # A request for those nights by name gets the reason.
    with pytest.raises((UsageError, ConfigError), match=r"second"):
        contexts(config, NEXT, LATER)


def test_nights_that_can_not_be_caught_up_with_are_noted_where_traces_came_late(config: Path) -> None:
    config.write_text(config.read_text() + "limits: {catch_up_days: 2}\n")
    (before,) = build_contexts(config, NEXT, NEXT, today=TODAY)
    put(before, trace("t1", day=NEXT), name="0-0")
    night(before)  # `first` counted, and scored what was there
    decide(config, "third", LATER)
    decide(config, "first", None, action=RETIRE, recipe_name=None, path=None, reason="noisy")

    def notes() -> list[str]:
        (ctx,) = build_contexts(config, LATER, LATER, today=TODAY)
        return [note for note in nightly.aggregate_nights(ctx).notes if "came late" in note]

    assert notes() == []  # nothing is missing
    put(before, trace("t2", day=NEXT), name="0-1")
    (note,) = notes()
    assert note.startswith(f"Traces of {NEXT} came late and stay without numbers of recipe 'claims': judge 'first'")
    assert "was retired on 2026-11-01 (noisy)" in note
    assert not [p for p in before.lake.parts(TRACE_SCORES) if p.name == "0-1"]


def test_an_application_whose_judge_is_gone_is_noted_alone(config: Path) -> None:
    config.write_text(config.read_text() + "limits: {catch_up_days: 2}\n")
    decide(config, "second", DAY, "shop")
    decide(config, "third", LATER)
    decide(config, "third", LATER, "shop")
    (config.parent / "second.yaml").unlink()
    # `first` still counts for `help` on the nights before, and catches up with it.
    found = build_contexts(config, LATER, LATER, today=TODAY)
    put(found[0], trace("t1", day=NEXT, app="help"), name="0-0")
    assert plan.unusable_notes(found[0]) == ()
    put(found[0], trace("t2", day=NEXT, app="shop"), name="0-1")
    (note,) = plan.unusable_notes(found[0])
    assert "judge 'second' counted for them" in note
    assert "second.yaml" in note
    assert [ctx.unusable for ctx in found[1:]] == [()] * (len(found) - 1)  # reported once


def test_a_backfill_without_a_judge_takes_the_one_that_counts_for_its_applications(config: Path) -> None:
    decide(config, "second", DAY, "shop")
    settings, known = load_nightly(config), promotions.log(Lake(config.parent / "lake"))

    def judge(*apps: str) -> str:
        (variant,) = backfill_variants(settings, config, known, None, None, apps, 1.0)
        return variant.chosen.recipe.judge.stem

    assert (judge(), judge("help"), judge("shop")) == ("first", "first", "second")
    with pytest.raises(UsageError, match=r"--app help, shop have judges of their own"):
        judge("shop", "help")


def test_a_shadow_runs_beside_on_a_sample_until_it_is_promoted(config: Path) -> None:
    settings = yaml.safe_load(config.read_text())
    settings["recipe"]["shadow"] = {"judge": "second.yaml", "share": 0.5}
    config.write_text(yaml.safe_dump(settings))
    assert contexts(config) == [("first", ALL, ALWAYS, False), ("second", Scope(share=0.5), ALWAYS, True)]
    decide(config, "second", DAY)
    assert contexts(config) == [("second", ALL, ALWAYS, False)]


def test_a_shadow_goes_on_for_the_applications_that_it_is_not_promoted_for(config: Path) -> None:
    settings = yaml.safe_load(config.read_text())
    settings["recipe"]["shadow"] = {"judge": "second.yaml", "share": 0.5}
    config.write_text(yaml.safe_dump(settings))
    decide(config, "second", DAY, "shop")
    assert contexts(config) == [
        ("first", Scope(without=("shop",)), ALWAYS, False),
        ("second", Scope(apps=("shop",)), ALWAYS, False),
        ("second", Scope(without=("shop",), share=0.5), ALWAYS, True),
    ]
    decide(config, "second", NEXT)  # for all, but for one that keeps another
    decide(config, "third", NEXT, "help")
    assert contexts(config, NEXT, NEXT) == [
        ("second", Scope(without=("help",)), ALWAYS, False),
        ("third", Scope(apps=("help",)), ALWAYS, False),
        ("second", Scope(apps=("help",), share=0.5), ALWAYS, True),
    ]
    # Of a range over the change, it goes on for each night as far as it counts for nothing there.
    assert [c for c in contexts(config, DAY, NEXT) if c[3]] == [
        ("second", Scope(without=("shop",), share=0.5), DateRange(DAY, DAY), True),
        ("second", Scope(apps=("help",), share=0.5), DateRange(NEXT, NEXT), True),
    ]


def night(ctx: Context) -> None:
    """The stages from claims to nightly tables; the relevance stage needs a model and may be left out."""
    for stage in (claims.extract_claims, pairs.plan_pairs, verdicts.judge_pairs, verdicts.judge_joint_pairs):
        stage(ctx)
    score.score_traces(ctx)
    nightly.aggregate_nights(ctx)


def test_the_tables_say_which_recipe_counts_for_which_application(config: Path) -> None:
    decide(config, "second", DAY, "shop")
    found = build_contexts(config, DAY, DAY, today=TODAY)
    put(found[0], trace("t1", app="shop"), trace("t2", app="help"))
    for ctx in found:
        night(ctx)
    lake = found[0].lake
    assert [
        (r["app"], r["judge_version"]) for part in lake.parts(CURRENT_RECIPES) for r in part.read().to_pylist()
    ] == [("help", version(config, "first")), ("shop", version(config, "second"))]
    # Each judged its own application, and the other's traces are in no table of its recipe.
    for ctx, trace_id in zip(found, ("t2", "t1"), strict=True):
        scored = [r["trace_id"] for part in lake.parts(TRACE_SCORES, ctx.recipe) for r in part.read().to_pylist()]
        assert scored == [trace_id]


def test_a_judge_counts_for_no_application_but_its_own_though_it_has_judged_all(config: Path) -> None:
    """`second` is backfilled for both applications, and then promoted for one of them from before those days on."""
    decide(config, "second", DAY)
    (everything,) = build_contexts(config, DAY, DAY, today=TODAY, writer="backfill")
    put(everything, trace("t1", app="shop"), trace("t2", app="help"))
    night(everything)
    decide(config, "first", DAY)
    decide(config, "second", DAY, "shop")
    found = build_contexts(config, DAY, DAY, today=TODAY)
    for ctx in found:
        night(ctx)
    rows = [r for part in found[0].lake.parts(CURRENT_RECIPES) for r in part.read().to_pylist()]
    assert [(r["app"], r["judge_version"]) for r in rows] == [
        ("help", version(config, "first")), ("shop", version(config, "second"))
    ]  # fmt: skip


def test_a_shadow_counts_for_nothing(config: Path) -> None:
    settings = yaml.safe_load(config.read_text())
    settings["recipe"]["shadow"] = {"judge": "second.yaml", "share": 1}
    config.write_text(yaml.safe_dump(settings))
    found = build_contexts(config, DAY, DAY, today=TODAY)
    put(found[0], trace("t1"))
    for ctx in found:
        night(ctx)
    rows = [r for part in found[0].lake.parts(CURRENT_RECIPES) for r in part.read().to_pylist()]
    assert [r["recipe"] for r in rows] == [found[0].recipe]
    assert found[0].lake.parts(TRACE_SCORES, found[1].recipe)
