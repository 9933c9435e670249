"""Every query of docs/cookbook.md, on a warehouse made from the bundled sample with verdicts that cost nothing."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from kit.root import ROOT

from tasks.claims import extract as claims
from tasks.ingest import ingest
from tasks.judging import pairs, relevance, verdicts
from tasks.publish import publish
from tasks.run.build import build_context
from tasks.run.record import Record
from tasks.scoring import corrected as reviewed
from tasks.scoring import grace, nightly, score
from tasks.store.warehouse import query

COOKBOOK = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
FIRST, LAST = date(2026, 11, 1), date(2026, 11, 3)
# A claim is supported if any of its looks is, of which there are about four; so that about half of the claims are.
SHARES = {"supported": 0.15, "partially_supported": 0.05, "unsupported": 0.7, "contradicted": 0.05, "abstained": 0.03}
SHARES["failure"] = 0.02


class Recipe(NamedTuple):
    title: str
    sql: str
    columns: list[str]


def _recipes() -> Iterator[Recipe]:
    for section in re.split(r"^## ", COOKBOOK, flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"```sql\n(.*?)```\n\nReturns ((?:`\w+`, )*`\w+`)\.\n", section, re.DOTALL)
        title = section.splitlines()[0]
        assert len(blocks) == section.count("```sql") == 1, f"{title}: one query, and a line of what it returns"
        yield Recipe(title, blocks[0][0], re.findall(r"`(\w+)`", blocks[0][1]))


RECIPES = {r.title: r for r in _recipes()}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's three nights. Judged by draws: what is tested is that the queries fit the tables."""
    here = tmp_path_factory.mktemp("cookbook")
    (here / "judge.yaml").write_text(yaml.safe_dump({"kind": "replay", "shares": SHARES}))
    paths = sorted(str(p) for p in (ROOT / "data" / "sample").glob("2026-*.jsonl*"))
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report", "max_trace_pages": 0},
        "sources": [{"kind": "jsonl", "paths": paths}],
        "recipe": {"judge": "judge.yaml", "relevance": {"threads": 1}},  # tests run side by side
    }
    (here / "nightly.yaml").write_text(yaml.safe_dump(config))
    ctx = build_context(here / "nightly.yaml", FIRST, LAST)
    run = Record("nightly")
    run.start(ctx)
    for stage in (
        ingest.ingest,
        claims.extract_claims,
        grace.score_grace,
        pairs.plan_pairs,
        verdicts.judge_pairs,
        verdicts.judge_joint_pairs,
        relevance.score_relevance,
        score.score_traces,
        nightly.aggregate_nights,
        reviewed.correct_nights,
        publish.load_warehouse,
    ):
        run.stages.append(stage(ctx))
    run.end(ctx, "completed")
    publish.publish_warehouse(ctx)
    ctx.close()
    return here / "leadline.duckdb"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda r: r.title)
def test_query_answers_with_the_columns_that_the_page_promises(recipe: Recipe, warehouse: Path) -> None:
    rows = query(warehouse, recipe.sql)
    assert rows.column_names == recipe.columns
    assert rows.num_rows > 0


@pytest.mark.slow
def test_annotated_sources_come_out_as_the_sample_was_written(warehouse: Path) -> None:
    """The counts stand in the section "Annotations" of data/sample/README.md; no judge takes part in them."""
    sql = RECIPES["Was the right source found and cited?"].sql
    found: Counter[str] = Counter()
    for row in query(warehouse, sql).to_pylist():
        found[row["outcome"]] += row["traces"]
    assert found == {"hit": 99, "not_retrieved": 4, "cited_another": 4, "cited_nothing": 5}


@pytest.mark.slow
def test_what_is_left_out_and_what_is_scored_make_up_the_sample(warehouse: Path) -> None:
    """122 traces; of these 4 have no chunks, 2 no claims and 2 nothing but a refusal (data/sample/README.md), which is N/A
    for any judge."""
    sql = RECIPES["What is left out of the means?"].sql
    rows = query(warehouse, sql).to_pylist()
    assert sum(r["traces"] for r in rows) == 122
    assert sum(r["na"] for r in rows) == 8
    assert all(r["traces"] == r["scored"] + r["na"] + r["unjudged"] + r["abstained"] for r in rows)


@pytest.mark.slow
def test_the_interval_of_a_rate_is_over_questions(warehouse: Path) -> None:
    """The squared distance of an end from the rate is 1.96² variances there: p (1 − p) / n, where n claims of which each
    is a question of its own would have the variance that the sums of the questions have."""
    sql = RECIPES["Which generator misuses citations most?"].sql
    rows = query(warehouse, sql).to_pylist()
    claims = query(
        warehouse,
        """
        SELECT d.app, d.generator, s.question_id, count(*) AS n, count(*) FILTER (misused) AS bad
        FROM current_claim_details AS d JOIN current_trace_scores AS s USING (recipe, date, trace_id)
        WHERE d.label IS NOT NULL AND d.misused IS NOT NULL AND len(d.cited_chunk_ids) > 0
        GROUP BY ALL
        """,
    ).to_pylist()
    assert len(rows) == 4
    for row in rows:
        own = [(c["bad"], c["n"]) for c in claims if (c["app"], c["generator"]) == (row["app"], row["generator"])]
        whole, p = sum(n for _, n in own), row["misuse_rate"]
        assert row["claims_citing"] == whole
        assert p == pytest.approx(sum(bad for bad, _ in own) / whole)
        variance = len(own) / (len(own) - 1) * sum((bad - p * n) ** 2 for bad, n in own) / whole**2
        for end in (row["low"], row["high"]):
            assert (p - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) * variance / (p * (1 - p)))
        assert 0 <= row["low"] < p < row["high"] <= 1
