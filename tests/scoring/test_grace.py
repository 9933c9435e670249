"""GRACE through the real stages: every citation style, both kinds of annotation, and when it is computed again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import DAY, NEXT, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.errors import EngineError
from tasks.core.schemas import NIGHTLY_GRACE, NIGHTLY_GRACE_CONFUSION, NIGHTLY_GRACE_SOURCES, TRACE_GRACE
from tasks.judging.pairs import plan_pairs
from tasks.judging.verdicts import judge_pairs
from tasks.run.annotations import load
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.result import StageResult
from tasks.scoring.grace import score_grace

CHUNKS = {"a": "alpha facts.", "b": "beta facts."}


def complete(ctx: Context) -> StageResult:
    extract_claims(ctx)
    return score_grace(ctx)


def outcomes(ctx: Context) -> dict[str, str | None]:
    return {r["trace_id"]: r["outcome"] for r in rows(ctx, TRACE_GRACE, ctx.recipe)}


def about(trace_id: str, answer: str, gold: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return trace(trace_id, answer, CHUNKS, **{"gold_chunk_ids": gold} if gold is not None else {}, **more)


def with_docs(row: dict[str, Any], docs: dict[str, str]) -> dict[str, Any]:
    return {**row, "chunks": [{**c, "doc_id": docs[c["chunk_id"]]} for c in row["chunks"]]}


@pytest.mark.parametrize(
    "answer",
    ["It is so [2].", "It is so [a][b].", "It is so [b].", "It is so [^2].", "It is so 【2†x】.", "It is so.²", "It is so (beta.md)."],
)  # fmt: skip
def test_whatever_the_style_a_citation_of_the_right_source_is_a_hit(tmp_path: Path, answer: str) -> None:
    ctx = context(tmp_path)
    put(ctx, with_docs(about("t", answer, ["b"]), {"a": "alpha.md", "b": "beta.md"}))
    complete(ctx)
    assert outcomes(ctx) == {"t": "hit"}


def test_citations_that_are_logged_as_structure_count(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, about("t", "It is so.", ["b"], citations=[{"start": 0, "end": 9, "chunk_ids": ["b"]}]))
    complete(ctx)
    assert outcomes(ctx) == {"t": "hit"}


def test_an_apps_own_style_counts(tmp_path: Path) -> None:
    style = {"kind": "sentences", "styles": {"wiki": r"\{\{(?P<ref>[^}]+)\}\}"}, "citation_style": "wiki"}
    ctx = context(tmp_path, recipe={"apps": {"wiki": style}})
    put(ctx, about("t", "It is so {{b}}.", ["b"], app="wiki"), about("u", "It is so {{b}}.", ["b"]))
    complete(ctx)
    assert outcomes(ctx) == {"t": "hit", "u": "cited_nothing"}


def test_the_four_misses_and_what_is_not_annotated(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(
        ctx,
        about("another", "It is so [1].", ["b"]),
        about("gone", "It is so [1].", ["z"]),
        about("na", "It is so [1]."),
        about("nothing", "It is so.", ["b"]),
        about("stray", "It is so [9].", ["b"]),
    )
    complete(ctx)
    assert outcomes(ctx) == {
        "another": "cited_another", "gone": "not_retrieved", "na": None, "nothing": "cited_nothing", "stray": "retrieved_not_cited",
    }  # fmt: skip
    (night,) = rows(ctx, NIGHTLY_GRACE, ctx.recipe)
    counts = [night[c] for c in ("n", "n_scored", "n_na", "hits", "not_retrieved", "retrieved_not_cited", "cited_another", "cited_nothing")]  # fmt: skip
    assert counts == [5, 4, 1, 0, 1, 1, 1, 1]
    assert night["accuracy"] == 0.0


def test_no_judge_is_needed(tmp_path: Path) -> None:
    """With the model down, the night has its GRACE numbers all the same."""
    ctx = context(tmp_path, judge=Watched(up_for=0))
    put(ctx, about("t", "It is so [2].", ["b"]))
    complete(ctx)
    plan_pairs(ctx)
    with pytest.raises(EngineError):
        judge_pairs(ctx)
    assert [r["accuracy"] for r in rows(ctx, NIGHTLY_GRACE, ctx.recipe)] == [1.0]


def test_answers_that_have_not_been_cut_wait(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, about("t", "It is so [2].", ["b"]))
    assert score_grace(ctx).computed == 0
    assert rows(ctx, NIGHTLY_GRACE) == []
    assert complete(ctx).computed == 1


def test_a_document_may_be_the_source(tmp_path: Path) -> None:
    docs = {"a": "guide.md", "b": "guide.md"}
    found = {}
    for source in ("chunk", "doc"):
        (tmp_path / source).mkdir()
        ctx = context(tmp_path / source, recipe={"grace": {"source": source}})
        put(ctx, with_docs(about("t", "It is so [1].", ["b"]), docs))
        complete(ctx)
        (row,) = rows(ctx, NIGHTLY_GRACE_SOURCES, ctx.recipe) if source == "doc" else [{}]
        found[source] = (ctx.recipe, outcomes(ctx)["t"], row.get("source"))
    assert found["chunk"][1:] == ("cited_another", None)
    assert found["doc"][1:] == ("hit", "guide.md")
    assert found["chunk"][0] != found["doc"][0]  # it can change a number, and so is part of the recipe


class TestAFile:
    def ready(self, root: Path, *lines: str) -> Context:
        (root / "gold.jsonl").write_text("".join(line + "\n" for line in lines))
        ctx = context(root, last=NEXT, recipe={"grace": {"annotations": "gold.jsonl"}})
        if not trace_parts(ctx):
            put(ctx, about("tea", "It is so [1].", question="How hot is tea?"), about("ice", "It is so [2].", ["b"], question="How cold is ice?"))  # fmt: skip
            put(ctx, about("next", "It is so [1].", day=NEXT, question="Why?"))
        return ctx

    def test_it_annotates_by_question(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, '{"question": "HOW hot  is tea?", "gold_ids": ["a"]}')
        complete(ctx)
        assert outcomes(ctx) == {"tea": "hit", "ice": "hit", "next": None}
        who = {r["trace_id"]: r["annotated_in"] for r in rows(ctx, TRACE_GRACE)}
        assert who == {"tea": "file", "ice": "trace", "next": None}

    def test_a_bad_row_is_reported_and_the_good_ones_count(self, tmp_path: Path) -> None:
        done = complete(self.ready(tmp_path, "nonsense", '{"question": "How hot is tea?", "gold_ids": ["b"]}'))
        assert done.notes == ("gold.jsonl: 1 of 2 annotations can't be used and are left out (line 1: not JSON).",)
        assert outcomes(self.ready(tmp_path))["tea"] == "cited_another"

    def test_a_change_computes_again_and_an_unchanged_file_does_not(self, tmp_path: Path) -> None:
        tea = '{"question": "How hot is tea?", "gold_ids": ["a"]}'
        first = self.ready(tmp_path, tea)
        assert (complete(first).computed, complete(first).computed) == (3, 0)
        before = {p.path: p.path.stat().st_mtime_ns for t in (TRACE_GRACE, NIGHTLY_GRACE) for p in first.lake.parts(t)}
        same = self.ready(tmp_path, "nonsense", tea)  # a bad row annotates nothing
        assert (complete(same).computed, complete(same).reused) == (0, 3)
        assert {path: path.stat().st_mtime_ns for path in before} == before
        changed = self.ready(tmp_path, tea.replace('"a"', '"b"'))
        assert changed.recipe == first.recipe  # the annotations are data: no other recipe for them
        assert complete(changed).computed == 3
        assert outcomes(changed)["tea"] == "cited_another"
        (night,) = [r for r in rows(changed, NIGHTLY_GRACE) if r["date"] == DAY]
        assert (night["hits"], night["cited_another"]) == (1, 1)
        assert {(r["gold"], r["cited"]) for r in rows(changed, NIGHTLY_GRACE_CONFUSION)} == {("b", "a"), ("b", "b")}

    def test_a_file_that_is_taken_out_leaves_the_traces_own_word(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, '{"question": "How cold is ice?", "gold_ids": ["a"]}')
        complete(ctx)
        assert outcomes(ctx)["ice"] == "cited_another"
        complete(replace(ctx, annotations=load(None, "", "")))
        assert outcomes(ctx)["ice"] == "hit"


def test_a_late_part_joins_its_night(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, about("t", "It is so [2].", ["b"]))
    complete(ctx)
    put(ctx, about("u", "It is so [1].", ["b"]), name="1111111111111111-00000")
    assert (complete(ctx).computed, complete(ctx).reused) == (1, 2)
    (night,) = rows(ctx, NIGHTLY_GRACE)
    assert (night["n_scored"], night["hits"]) == (2, 1)
