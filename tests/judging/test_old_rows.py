"""Editing a recipe or a judge adds rows and leaves the old ones as they are, file by file, whichever field it is.

That each field makes another version is tested where versions are (`test_context.py`, `test_every_field.py`); here, what
becomes of the lake then. Each field by itself goes as far as pairs, whose rows stand under the recipe, or verdicts, which
stand under the judge; whole nights are those of all fields together that enter at the same stage, so that what comes
before it is shared with the old rows. What a model would score is a constant, and the gate is left out, which writes no
row of these tables and takes longer than all the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.root import ROOT
from kit.stage_kit import DAY, TODAY, Directions, leaves, put, trace

from tasks.claims import extract as claims
from tasks.core.config import Recipe
from tasks.core.schemas import CLAIM_RESULTS, PAIRS, TRACE_SCORES, VERDICTS, Table
from tasks.judges import replay
from tasks.judging import pairs, relevance, verdicts
from tasks.judging.grades import grade_answers
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.scorers import Item, Kind, Scored, Scorer
from tasks.scoring import corrected as reviewed
from tasks.scoring import grace, nightly, score

CONFIGS = ROOT / "configs"
SHOWN = {"a": "Water boils at one hundred degrees.", "b": "Tea is a plant. It is drunk hot."}
FURTHER = {"judge": "second.yaml", "band": [0.0, 1.0]}
TOGETHER = {"pairing": {"kind": "cited_together"}}
PAIRING = {"kind": "all_chunks", "k": 1, "window_words": 20, "joint_words": 0, "pack_words": 50}


def by_a_model(section: str, method: str, by: str, name: str) -> dict[str, dict[str, Any]]:
    """A method of relevance that asks a model, with the field that names the model's file."""
    return {
        f"{section}.method {section}.{by}": {section: {"method": method, by: str(CONFIGS / "judges" / f"{name}.yaml")}}
    }


def together(changes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One change that is all of these."""
    found: dict[str, Any] = {}
    for change in changes:
        for name, value in change.items():
            if isinstance(value, dict):
                found[name] = together([found.get(name, {}), value])
            else:
                assert found.setdefault(name, value) == value, f"{name} is changed twice"
    return found


# The fields of a recipe by the stage at which a change of them enters, and a change of each: of a plain recipe, or of one
# of those that `root` has too.
STAGES: dict[str, dict[str, dict[str, Any]]] = {
    "method": {"method": {"method": "citations", **TOGETHER}},
    "claims": {"extractor": {"extractor": {"kind": "segments"}}, "apps": {"apps": {"shop": {"kind": "segments"}}}, "earlier_questions": {"earlier_questions": 1}},
    "pairs": {f"pairing.{name}": {"pairing": {name: value}} for name, value in PAIRING.items()},
    "verdicts": {"judge": {"judge": "second.yaml"}},
    "cascade": {
        "cascade.judge": {"cascade": {"judge": "third.yaml"}},
        "cascade.band": {"cascade": {"band": [0.2, 0.9]}},
        **{f"cascade.pairing.{name}": {"cascade": {"pairing": {name: value}}} for name, value in PAIRING.items()},
    },
    "relevance": {
        "relevance": {"relevance": {"max_tokens": 64}},
        **by_a_model("answer_relevance", "questions", "writer", "questions-qwen3-8b-24gb"),
        **by_a_model("context_relevance", "reranker", "reranker", "reranker-bge-v2-m3"),
    },
    "relevance, graded": {
        **by_a_model("answer_relevance", "rated", "rater", "relevance-qwen3-8b-24gb"),
        **by_a_model("context_relevance", "rated", "rater", "chunk-relevance-qwen3-8b-24gb"),
        **by_a_model("answerability", "rated", "rater", "answerability-qwen3-8b-24gb"),
    },
    "grades": {"grades.grader": {"grades": {"grader": str(CONFIGS / "graders" / "constant.yaml")}}},
    "scores": {
        **{
            f"{section}.{name}": {section: {name: value}}
            for section, name, value in (
                ("scoring", "misuse_penalty", 1), ("scoring", "partial_credit", 0.5), ("scoring", "dangling_as_misuse", True),
                ("triad", "context_relevance", 0.9), ("triad", "groundedness", 90), ("triad", "answer_relevance", 0.9),
                ("waterfall", "retrieval", 0.9), ("waterfall", "answerability", 0.9), ("waterfall", "faithfulness", 0.9),
                ("waterfall", "answer_relevance", 0.9), ("waterfall", "partial_passes", True), ("grace", "source", "doc"),
            )
        },
        "patterns": {"patterns": ["ghost_number"]},
    },
}  # fmt: skip
CHANGES = {fields: change for changes in STAGES.values() for fields, change in changes.items()}
# Of these a recipe is the same; a shadow has one of its own, which is that of its judge.
SAME = {"name", "shadow.judge", "shadow.share", "grace.annotations"}
JUDGE: dict[str, dict[str, Any]] = {
    "seed": {"seed": 7},
    **{
        f"shares.{name}": {"shares": {"supported": 0.5, "unsupported": 0, "contradicted": 0, "partially_supported": 0, **more}}
        for name, more in {
            "supported": {"supported": 1}, "partially_supported": {"partially_supported": 0.5},
            "unsupported": {"unsupported": 0.5}, "contradicted": {"contradicted": 0.5},
            "abstained": {"abstained": 0.5}, "failure": {"failure": 0.5},
        }.items()
    },
    "records": {"records": "recorded.jsonl"},
}  # fmt: skip
JUDGE_SAME = {"kind", "log"}


@dataclass
class Constant:
    """A scorer with the version and the name of a real one."""

    kinds: tuple[Kind, ...]
    method: str
    version: str
    asks: bool
    gpus: int = 0
    model: object = None

    def score(self, items: Sequence[Item]) -> list[Scored]:
        return [Scored(0.5) for _ in items]

    def shows(self, item: Item) -> tuple[str, ...]:
        return item.passages

    def close(self) -> None:
        """Nothing is held."""


def constant(scorer: Scorer) -> Scorer:
    return Constant(scorer.kinds, scorer.method, scorer.version, scorer.asks)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a few traces, judged and scored under the recipes that the changes are made to."""
    made = tmp_path_factory.mktemp("lake")
    (made / "recorded.jsonl").write_text("")
    for base in ({}, TOGETHER, {"cascade": {}}):
        night(made, base)
    assert len(rows_of(made)) > 3 * 10
    return made


def changed(root: Path, recipe: Mapping[str, Any], judge: Mapping[str, Any] | None = None) -> Context:
    """The context of this recipe and this judge, with claims and pairs; of a cascade, what is not its default."""
    (root / "judge.yaml").write_text(yaml.safe_dump({"kind": "replay", **(judge or {})}))
    for seed, name in enumerate(("second", "third"), start=1):
        (root / f"{name}.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": seed}))
    later = {"cascade": [{**FURTHER, **recipe["cascade"]}]} if "cascade" in recipe else {}
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": [{"kind": "jsonl", "paths": ["logs/*.jsonl"]}],
        "recipe": {"judge": "judge.yaml", **recipe, **later},
    }
    (root / "nightly.yaml").write_text(yaml.safe_dump(config))
    ctx = build_context(root / "nightly.yaml", DAY, DAY, today=TODAY)
    ctx = replace(ctx, embedder=Directions(), scorers=tuple(map(constant, ctx.scorers)))
    if not trace_parts(ctx):
        put(
            ctx,
            trace("t", "Tea is hot [1]. It boils at 90 degrees [2].", SHOWN, gold_chunk_ids=["a"]),
            trace("u", "Tea is a plant [2]. It is drunk hot.", SHOWN, app="help", gold_chunk_ids=["b"]),
        )
    claims.extract_claims(ctx)
    pairs.plan_pairs(ctx)
    return ctx


def night(root: Path, recipe: Mapping[str, Any]) -> Context:
    """A night under this recipe."""
    ctx = changed(root, recipe)
    grace.score_grace(ctx)
    for judge in ctx.judges:
        verdicts.judge_pairs(ctx, stage=judge.stage)
        verdicts.judge_joint_pairs(ctx, stage=judge.stage)
    relevance.score_relevance(ctx)
    grade_answers(ctx)
    score.score_traces(ctx)
    nightly.aggregate_nights(ctx)
    reviewed.correct_nights(ctx)
    return ctx


def rows_of(root: Path) -> dict[str, str]:
    """The parts of the lake, but for which recipe counts for the night: that is the latest one."""
    lake = root / "lake"
    names = {p: str(p.relative_to(lake)) for p in sorted(lake.rglob("*.parquet"))}
    return {
        n: sha256(p.read_bytes()).hexdigest() for p, n in names.items() if not n.startswith((".", "current_recipes"))
    }


def made_beside(root: Path, ctx: Context, before: dict[str, str], *tables: Table) -> None:
    """All that was there is there as it was, and each table has a part of this recipe that was not."""
    after = rows_of(root)
    assert {name: after.get(name) for name in before} == before
    for table in tables:
        parts = [p for p in ctx.lake.parts(table, ctx.recipe) if not p.name.endswith(("-joint", "-stage2"))]
        assert len(parts) == 1, f"{len(parts)} parts of {table.name}"
        assert str(parts[0].path.relative_to(root / "lake")) not in before


def test_no_field_is_forgotten() -> None:
    assert {name for fields in CHANGES for name in fields.split()} | SAME == set(leaves(Recipe))
    assert {*JUDGE, "languages"} | JUDGE_SAME == set(leaves(replay.Config))


# Where a stage has but one field, its whole night is that of this field.
@pytest.mark.parametrize("fields", [f for changes in STAGES.values() if len(changes) > 1 for f in changes])
def test_another_recipe_leaves_the_pairs_of_the_one_before(root: Path, fields: str) -> None:
    before = rows_of(root)
    ctx = changed(root, CHANGES[fields])
    made_beside(root, ctx, before, PAIRS)


@pytest.mark.parametrize("field", JUDGE)
def test_another_judge_leaves_the_verdicts_of_the_one_before(root: Path, field: str) -> None:
    before = rows_of(root)
    ctx = changed(root, {}, JUDGE[field])
    assert verdicts.judge_pairs(ctx).computed
    made_beside(root, ctx, before, PAIRS)
    assert ctx.lake.parts(VERDICTS, ctx.judge_version)


def test_other_languages_of_a_judge_leave_the_pairs_of_the_one_before(root: Path) -> None:
    before = rows_of(root)
    made_beside(root, changed(root, {}, {"languages": ["en"]}), before, PAIRS)


@pytest.mark.parametrize("stage", STAGES)
def test_another_night_leaves_the_rows_of_the_one_before(root: Path, stage: str) -> None:
    before = rows_of(root)
    ctx = night(root, together(STAGES[stage].values()))
    made_beside(root, ctx, before, CLAIM_RESULTS, TRACE_SCORES, *nightly.nightly_tables(ctx))
    assert sum(p.rows() for p in ctx.lake.parts(TRACE_SCORES, ctx.recipe)) == 2


def test_what_makes_no_recipe_makes_no_row(root: Path) -> None:
    before = rows_of(root)
    night(root, {"name": "renamed", "shadow": {"judge": "second.yaml"}})
    after = rows_of(root)
    night(root, {})
    # But for the recipe's name itself.
    assert {n for n in after if after[n] != before.get(n)} <= {n for n in after if n.startswith("recipes/")}
    assert set(after) == set(before)
