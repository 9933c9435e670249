"""Claims: rows of what extractors cut, part by part; a model's facts, its failures and its outages."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kit.root import ROOT
from kit.rule_generator import MODEL, Scripted
from kit.stage_kit import NEXT, TODAY, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.budget import Budget
from tasks.core.config import Retention, validate
from tasks.core.errors import EngineError
from tasks.core.schemas import CLAIMS
from tasks.core.types import OUTAGE
from tasks.engines.generator import Generated, Prompt
from tasks.extractors import ByApp, load
from tasks.extractors.atomic import GIVES, Atomic
from tasks.judges.generate import Config, Writer
from tasks.judging.pairs import plan_pairs
from tasks.privacy.retention import due, redact, request
from tasks.run.context import Context
from tasks.run.result import StageResult

NOW = datetime(2026, 11, 10, 8, tzinfo=UTC)
PROMPTS = ROOT / "configs" / "prompts"


def atomic(ctx: Context, model: Scripted) -> Context:
    """The same with an extractor that asks a model."""
    config = validate(Config, {"kind": "generate", "model": MODEL, "prompt": "facts/v1.md"}, "test")
    writer = Writer(config, model, str(PROMPTS / "w.yaml"), GIVES)
    sentences = load({"kind": "sentences"}, "x")
    return replace(ctx, extractor=ByApp(Atomic(sentences, writer, "atomic-version"), {"plain": sentences}))


def facts(*texts: str) -> str:
    return json.dumps({"facts": texts})


def sentence(prompt: Prompt) -> str:
    return prompt.user.rpartition("<sentence>")[2]


def two(prompt: Prompt) -> str:
    return facts("Tea is hot.", "Tea is wet.") if "wet" in sentence(prompt) else facts("It is fine.")


def test_a_claim_quotes_the_answer_without_a_model(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, trace("t", "Tea is **hot** [1][7]. Yes.", {"a": "x"}))
    assert extract_claims(ctx).computed == 2
    first, second = rows(ctx, CLAIMS)
    assert (first["text"], first["hypothesis"]) == ("Tea is **hot**", "Tea is hot")
    assert (first["span_start"], first["span_end"], first["ordinal"]) == (0, 14, 0)
    assert (first["cited_chunk_ids"], first["dangling_citations"]) == (["a"], ["7"])
    assert (second["text"], second["ordinal"], second["trace_id"]) == ("Yes.", 1, "t")
    assert second["claim_id"] == keys.claim_id("t", ctx.extractor.version, 1)
    assert extract_claims(ctx) == replace(extract_claims(ctx), computed=0, reused=2)


def test_a_fact_is_text_and_hypothesis_of_its_claim_and_shares_its_sentences_span(tmp_path: Path) -> None:
    model = Scripted(two)
    ctx = atomic(context(tmp_path), model)
    put(ctx, trace("t", "Tea is hot and wet [1]. Fine.", {"a": "x"}), trace("u", "Hot and wet.", app="plain"))
    done = extract_claims(ctx)
    found = rows(ctx, CLAIMS)
    assert [(c["trace_id"], c["ordinal"], c["text"], c["span_start"], c["span_end"]) for c in found] == [
        ("t", 0, "Tea is hot.", 0, 18),
        ("t", 1, "Tea is wet.", 0, 18),
        ("t", 2, "It is fine.", 24, 29),
        ("u", 0, "Hot and wet.", 0, 12),  # its app asks no model
    ]
    assert [c["hypothesis"] for c in found] == [c["text"] for c in found]
    assert [c["cited_chunk_ids"] for c in found] == [["a"], ["a"], [], []]
    assert len({c["claim_id"] for c in found}) == 4
    assert (done.computed, done.tokens_in, done.tokens_cached, done.tokens_out, done.notes) == (4, 20, 8, 6, ())
    assert "How hot is tea?" in model.asked[0].user  # the question tells what pronouns stand for
    assert model.closed == 1  # the judge's model comes next


def test_sentences_that_stay_whole_are_counted(tmp_path: Path) -> None:
    ctx = atomic(context(tmp_path), Scripted(lambda p: "?" if "wet" in sentence(p) else facts("F.")))
    put(ctx, trace("t", "Tea is **wet**. Yes."))
    done = extract_claims(ctx)
    assert [(c["text"], c["hypothesis"]) for c in rows(ctx, CLAIMS)] == [
        ("Tea is **wet**.", "Tea is wet."),
        ("F.", "F."),
    ]
    (note,) = done.notes
    assert note.startswith("1 sentences were not broken")


def parts(ctx: Context) -> list[str]:
    return sorted(p.name for p in ctx.lake.parts(CLAIMS))


def test_a_part_with_an_outage_is_left_to_the_next_run(tmp_path: Path) -> None:
    def down_for(app: str) -> Callable[[Prompt], Any]:
        return lambda p: Generated(failure=OUTAGE) if app in p.user else facts("F.")

    plain = context(tmp_path, last=NEXT)
    put(plain, trace("t1", "One."), trace("t2", "Two."), name="0-0")
    put(plain, trace("t3", "Three.", day=NEXT), name="0-1")
    done = extract_claims(atomic(plain, Scripted(down_for("Two."))))
    assert parts(plain) == ["0-1"]
    assert (done.computed, done.tokens_in) == (1, 30)
    assert done.notes == ("the model could not be asked about all answers of 1 parts: the next run cuts them",)

    model = Scripted(down_for("nobody"))
    again = extract_claims(atomic(plain, model))
    assert parts(plain) == ["0-0", "0-1"]
    assert (again.computed, again.reused, again.notes, len(model.asked)) == (2, 1, (), 2)


def test_a_model_that_is_down_ends_the_stage_and_keeps_what_is_done(tmp_path: Path) -> None:
    ctx = context(tmp_path, last=NEXT)
    put(ctx, trace("t1", "One."), name="0-0")
    put(ctx, trace("t2", "Two.", day=NEXT), name="0-1")
    model = Scripted(lambda _: facts("F."), up_for=1)
    with pytest.raises(EngineError, match="the model is down"):
        extract_claims(atomic(ctx, model))
    assert parts(ctx) == ["0-1"]  # the newest day comes first
    assert model.closed == 1


class TestBudget:
    """A sentence costs 13 tokens (`Scripted`); here the model is asked about one answer at a time."""

    @pytest.fixture
    def plain(self, tmp_path: Path) -> Context:
        ctx = context(tmp_path, last=NEXT)
        put(ctx, *(trace(f"t{n}", f"Old {n}.") for n in range(2)), name="0-0")
        put(ctx, *(trace(f"u{n}", f"New {n}.", day=NEXT) for n in range(3)), name="0-1")
        return ctx

    def cut(self, plain: Context, tokens: int | None) -> tuple[Scripted, StageResult]:
        model = Scripted(lambda p: facts(sentence(p).split("</")[0].strip()))
        return model, extract_claims(replace(atomic(plain, model), budget=Budget(tokens)), answers_at_once=1)

    def test_it_ends_between_two_steps_and_what_is_asked_is_not_asked_again(self, plain: Context) -> None:
        shown = []
        # Of the newest day 2 answers, since one costs less than 20 tokens; then the last of it, and one of the older.
        for tokens, cut in ((20, []), (20, ["0-1"]), (None, ["0-0", "0-1"])):
            model, done = self.cut(plain, tokens)
            shown.append([sentence(p).split("</")[0].strip() for p in model.asked])
            assert parts(plain) == cut
            assert done.tokens_in == 10 * len(model.asked)
        assert shown == [["New 0.", "New 1."], ["New 2.", "Old 0."], ["Old 1."]]
        assert [(c["trace_id"], c["text"], c["ordinal"]) for c in rows(plain, CLAIMS)] == [
            ("t0", "Old 0.", 0), ("t1", "Old 1.", 0), ("u0", "New 0.", 0), ("u1", "New 1.", 0), ("u2", "New 2.", 0)
        ]  # fmt: skip
        assert not list(plain.lake.hidden("unfinished").rglob("*.parquet"))

    def test_a_part_that_is_begun_has_no_claims_for_any_other_stage(self, plain: Context) -> None:
        self.cut(plain, 1)
        assert list(plain.lake.hidden("unfinished").rglob("*.parquet"))
        assert rows(plain, CLAIMS) == []
        assert plan_pairs(plain).computed == 0

    def test_each_run_takes_a_step_however_small_its_budget(self, plain: Context) -> None:
        model, _ = self.cut(plain, 0)
        assert model.asked == []  # nothing is left of it: not even a part is begun
        for _ in range(5):
            self.cut(plain, 1)
        assert parts(plain) == ["0-0", "0-1"]

    def test_a_text_that_has_to_go_is_gone_from_what_is_begun(self, plain: Context) -> None:
        self.cut(plain, 1)
        request(plain.lake, ["u0"], None, NOW)
        redact(plain.lake, due(plain.lake, Retention(), TODAY), NOW)
        assert not list(plain.lake.hidden("unfinished").rglob("*.parquet"))
        self.cut(plain, None)
        assert [c["trace_id"] for c in rows(plain, CLAIMS)] == ["t0", "t1", "u1", "u2"]

    def test_an_outage_keeps_the_steps_before_it(self, plain: Context) -> None:
        down = Scripted(lambda p: Generated(failure=OUTAGE) if "New 1." in p.user else facts("F."))
        assert extract_claims(atomic(plain, down), answers_at_once=1).computed == 2  # of the other day
        model, _ = self.cut(plain, None)
        assert [sentence(p).split("</")[0].strip() for p in model.asked] == ["New 1.", "New 2."]


def test_a_dry_run_asks_no_model_and_counts_sentences(tmp_path: Path) -> None:
    model = Scripted(two)
    ctx = atomic(context(tmp_path), model)
    put(ctx, trace("t", "Tea is hot and wet. Fine."))
    assert extract_claims(ctx, modelless=True).computed == 2
    assert model.calls == []
