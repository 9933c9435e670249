"""Publish: what changed is loaded, written and put in place; what did not is left alone."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import DAY, NEXT, Watched, context, put, rows, trace
from kit.stores.postgres import postgres

from bench.ducklake import attached
from tasks.claims.extract import extract_claims
from tasks.core.schemas import CLAIMS, QUARANTINE, TRACE_SCORES
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_pairs
from tasks.publish.publish import (
    SHARED,
    load_warehouse,
    publish_results,
    publish_warehouse,
    rebuild,
    summary,
    warehouse_of,
    write_reports,
)
from tasks.run.context import Context
from tasks.scoring.grace import score_grace
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces
from tasks.store.lake import from_rows
from tasks.store.warehouse import Reader, query

pytestmark = pytest.mark.slow


class Built(list[date]):
    """Nights whose pages were built; the pages themselves have tests of their own."""

    def __call__(self, reader: Reader, out: Path, night: date, recipe: str, *_: object) -> None:
        found = reader.rows(
            "SELECT count(*) AS n FROM nightly_groundedness WHERE recipe = $r AND date = $d", {"r": recipe, "d": night}
        )
        assert found[0]["n"] > 0  # the night is in the warehouse by then
        (out / str(night)).mkdir(parents=True, exist_ok=True)
        self.append(night)


@pytest.fixture
def built() -> Built:
    return Built()


def night(ctx: Context, day: date, *names: str, part: str = "0000000000000000-00000") -> None:
    put(ctx, *(trace(n, day=day) for n in names), name=part)


def complete(ctx: Context) -> None:
    for stage in (
        extract_claims,
        score_grace,
        plan_pairs,
        judge_pairs,
        score_relevance,
        score_traces,
        aggregate_nights,
        load_warehouse,
    ):
        stage(ctx)


def both(root: Path, **more: Any) -> Context:
    return context(root, last=NEXT, judge=Watched(), recipe={"pairing": {"joint_words": 0}}, **more)


def test_a_night_is_written_once(tmp_path: Path, built: Built) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    night(ctx, NEXT, "t2")
    complete(ctx)
    first, again = write_reports(ctx, build=built), write_reports(ctx, build=built)
    assert (first.computed, first.reused) == (2, 0)
    assert (again.computed, again.reused) == (0, 2)
    assert built == [DAY, NEXT]


def test_a_change_of_a_night_renews_it_and_the_later_ones_whose_trends_show_it(tmp_path: Path, built: Built) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    night(ctx, NEXT, "t2")
    complete(ctx)
    write_reports(ctx, build=built)
    night(ctx, NEXT, "t3", part="ffffffffffffffff-00000")
    complete(ctx)
    built.clear()
    write_reports(ctx, build=built)
    assert built == [NEXT]
    night(ctx, DAY, "t4", part="ffffffffffffffff-00000")
    complete(ctx)
    built.clear()
    write_reports(ctx, build=built)
    assert built == [DAY, NEXT]


def test_a_row_that_is_refused_later_renews_its_night(tmp_path: Path, built: Built) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    night(ctx, NEXT, "t2")
    complete(ctx)
    write_reports(ctx, build=built)
    for part, n in (("a", 1), ("b", 0), ("a", 2)):  # a row more, a part without rows, another row
        refused = {"source": "s", "line": n, "date": NEXT, "stage": "parse", "reason": "wrong_type", "raw": "x"}
        ctx.lake.write(QUARANTINE, part, from_rows([refused] * bool(n), QUARANTINE))
        built.clear()
        load_warehouse(ctx)
        write_reports(ctx, build=built)
        assert built == ([NEXT] if n else [])


def test_changed_annotations_renew_the_nights_that_they_touch(tmp_path: Path, built: Built) -> None:
    def annotated(ids: str) -> Context:
        (tmp_path / "gold.csv").write_text(f"question,gold_ids\nhow hot is tea?,{ids}\n")
        return context(
            tmp_path, judge=Watched(), recipe={"pairing": {"joint_words": 0}, "grace": {"annotations": "gold.csv"}}
        )

    ctx = annotated("a")
    night(ctx, DAY, "t1")
    for again, expected in ((ctx, [DAY]), (annotated("a"), []), (annotated("b"), [DAY])):
        built.clear()
        complete(again)
        write_reports(again, build=built)
        assert built == expected


def test_nights_that_were_caught_up_are_written_too(tmp_path: Path, built: Built) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    night(ctx, NEXT, "t2")
    complete(ctx)
    write_reports(ctx, build=built)
    built.clear()
    night(ctx, DAY, "late", part="ffffffffffffffff-00000")
    later = context(
        tmp_path, first=NEXT, last=NEXT, recipe={"pairing": {"joint_words": 0}}, limits={"catch_up_days": 1}
    )
    complete(later)
    write_reports(later, build=built)
    assert built == [DAY, NEXT]


def test_a_report_that_was_deleted_is_written_again(tmp_path: Path, built: Built) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    complete(ctx)
    write_reports(ctx, build=built)
    (tmp_path / "report" / str(DAY) / ".inputs").unlink()
    assert write_reports(ctx, build=built).computed == 1


def test_publishing_loads_what_came_last(tmp_path: Path) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    complete(ctx)
    published = ctx.config.warehouse
    assert publish_warehouse(ctx).computed == 0  # everything is loaded, and there is no file yet
    assert published.exists()
    night(ctx, NEXT, "t2")
    complete(ctx)  # loads the change, as the nightly does before its reports
    night(ctx, DAY, "t3", part="ffffffffffffffff-00000")
    for stage in (extract_claims, plan_pairs, judge_pairs, score_relevance, score_traces):
        stage(ctx)
    assert publish_warehouse(ctx).computed > 0
    assert query(published, "SELECT count(*) AS n FROM trace_scores").to_pylist() == [{"n": 3}]
    assert not ctx.scratch.exists()


def test_what_was_loaded_by_an_earlier_stage_is_published_though_nothing_changed_since(tmp_path: Path) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    complete(ctx)
    publish_warehouse(ctx)
    night(ctx, NEXT, "t2")
    complete(ctx)
    publish_warehouse(ctx)
    assert query(ctx.config.warehouse, "SELECT count(*) AS n FROM trace_scores").to_pylist() == [{"n": 2}]


def test_a_rebuild_gives_the_same_tables(tmp_path: Path) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1")
    complete(ctx)
    publish_warehouse(ctx)
    sql = "SELECT * EXCLUDE (created_at) FROM pair_verdicts ORDER BY ALL", "FROM trace_scores ORDER BY ALL"
    before = [query(ctx.config.warehouse, s).to_pylist() for s in sql]
    assert before[0]
    ctx.config.warehouse.unlink()
    assert rebuild(ctx.lake, warehouse_of(ctx)) > 0
    assert [query(ctx.config.warehouse, s).to_pylist() for s in sql] == before


def test_the_summary_is_of_the_runs_days_and_recipe(tmp_path: Path) -> None:
    ctx = both(tmp_path)
    night(ctx, DAY, "t1", "t2")
    night(ctx, NEXT, "t3")
    complete(ctx)
    (row,) = summary(ctx)
    assert (row["app"], row["generator"], row["traces"], row["grounded_n"], row["groundedness"]) == (
        "shop",
        "g-1",
        3,
        3,
        100.0,
    )
    assert (row["low"], row["high"]) == (None, None)  # one question, asked three times
    assert "total" not in row
    one = context(tmp_path, judge=Watched(), recipe={"pairing": {"joint_words": 0}})
    assert [r["traces"] for r in summary(one)] == [2]
    assert summary(context(tmp_path, recipe={"scoring": {"misuse_penalty": 9}})) == []


def test_many_analysts_get_the_night_without_its_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = both(tmp_path, ducklake={"dsn_env": "CATALOG", "data_path": "shared"})
    night(ctx, DAY, "t1")
    complete(ctx)
    monkeypatch.delenv("CATALOG", raising=False)
    (note,) = publish_results(ctx).notes
    assert "`ducklake.dsn_env` names $CATALOG, which is not set. Set it where Leadline runs." in note
    monkeypatch.setenv("CATALOG", "postgresql://me:secret@127.0.0.1:1/none")
    (note,) = publish_results(ctx).notes
    assert "the catalog in $CATALOG does not answer" in note
    assert "secret" not in note
    assert query(ctx.config.warehouse, "SELECT trace_id FROM trace_scores").to_pylist() == [{"trace_id": "t1"}]
    with postgres() as address:
        monkeypatch.setenv("CATALOG", address)
        made_good, again = publish_results(ctx), publish_results(ctx)
        assert (made_good.notes, again.notes, again.computed) == ((), (), 0)
        assert made_good.computed > 0
        with attached(address) as connection:
            shown = {table.name: str(connection.execute(f"FROM catalog.{table.name}").fetchall()) for table in SHARED}
    assert "'t1'" in shown["trace_scores"]
    assert "'t1'" in shown["claims"]
    (claim,) = rows(ctx, CLAIMS)
    assert "Tea is hot." in claim["text"]  # the answer of every trace here
    assert not [name for name, found in shown.items() if "Tea" in found or "Water" in found]
    assert {c for table in (TRACE_SCORES, CLAIMS) for c in table.schema.names} - {
        c for table in (TRACE_SCORES, CLAIMS) for c in SHARED[table]
    } == {"question_id", "session_id", "text", "context", "hypothesis", "dangling_citations"}
