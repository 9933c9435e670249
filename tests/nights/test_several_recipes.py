"""Several recipes in one night, by the command: what they share is paid for once, and each has its own results."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from kit.commands import leadline
from kit.root import ROOT
from kit.worlds import FIRST, World, last_run, make_traces, make_world, read, tables, write

from flows.nightly.dry_run import measure
from tasks.core.errors import ConfigError
from tasks.core.types import Judge
from tasks.run.build import build_contexts

GRADER = ROOT / "configs" / "graders" / "constant.yaml"
BOTH = {"extractor": {"kind": "segments"}, "judge": "replay.yaml", "grades": {"grader": str(GRADER)}}
CLAIMS = {"name": "claims", "pairing": {"kind": "per_chunk"}, **BOTH}
CITATIONS = {"name": "cited", "method": "citations", "pairing": {"kind": "cited_together"}, **BOTH}
SHARES = {"supported": 0.5, "partially_supported": 0.1, "unsupported": 0.3, "contradicted": 0.0, "abstained": 0.05, "failure": 0.05}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two recipes in files of their own, beside the judge that both name."""
    root = tmp_path_factory.mktemp("several")
    world = make_world(root, judge={"shares": SHARES})
    config: dict[str, Any] = yaml.safe_load(world.config.read_text())
    del config["recipe"]
    for recipe in (CLAIMS, CITATIONS):
        (world.out / f"{recipe['name']}.yaml").write_text(yaml.safe_dump({**recipe, "relevance": {"threads": 1}}))
    config["recipes"] = ["out/claims.yaml", "out/cited.yaml"]
    world.config.write_text(yaml.safe_dump(config, sort_keys=False))
    write(root / "logs" / "a.jsonl", make_traces(11, 45, days=1))
    return world


@pytest.mark.slow
def test_a_night_with_two_recipes(world: World, without_prefect: dict[str, str]) -> None:
    reported = measure(world.config, FIRST, FIRST)
    assert [j.judge for j in reported.judging.judges] == [
        "replay for claims", "replay, pass 1 for cited", "replay, pass 2 for cited",
    ]  # fmt: skip
    output = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    assert output.returncode == 0, output.stderr.decode()
    out = output.stdout.decode()
    assert f"Groundedness {FIRST} to {FIRST}, recipe claims" in out
    assert f"Citation groundedness {FIRST} to {FIRST}, recipe cited" in out

    # one run, once ingested, with the stages of each recipe
    run = last_run(world.warehouse)
    computed = {name: s["computed"] for name, s in run["stages"].items()}
    assert list(computed) == [
        "ingest", "claims: claims", "cited: claims", "claims: grace", "cited: grace", "claims: pairs", "cited: pairs",
        "claims: verdicts", "claims: joint pairs", "cited: verdicts", "cited: verdicts 2",
        "claims: relevance", "claims: answerability", "cited: relevance", "cited: answerability",
        "claims: grades", "cited: grades", "claims: scores", "cited: scores", "claims: nightly", "cited: nightly",
        "claims: reviewed", "cited: reviewed",
        "claims: alerts", "cited: alerts", "warehouse", "report",
    ]  # fmt: skip
    assert computed["ingest"] == reported.traces == 45
    assert computed["claims: claims"] == reported.claims
    recipes = {r["name"]: r for r in read(world.warehouse, "FROM recipes")}
    assert (run["recipe"], run["recipes"]) == (
        recipes["claims"]["recipe"],
        [recipes["claims"]["recipe"], recipes["cited"]["recipe"]],
    )

    # what is shared is computed once: claims, relevance, and each request's verdict
    assert (computed["cited: claims"], computed["cited: relevance"], computed["cited: grades"]) == (0, 0, 0)
    assert (reported.judging.answers, computed["claims: grades"]) == (45, 45 * 6)
    paid = world.log.read_text().split()
    assert len(paid) == len(set(paid)) == run["verdicts_computed"]
    (shared,) = read(
        world.warehouse,
        "SELECT count(DISTINCT p.request_key) AS n FROM pairs AS p JOIN pairs AS q USING (request_key)"
        f" WHERE p.recipe = '{recipes['claims']['recipe']}' AND q.recipe = '{recipes['cited']['recipe']}'",
    )
    assert shared["n"] > 0
    (first,) = read(
        world.warehouse,
        f"SELECT count(DISTINCT request_key) AS n FROM pairs WHERE stage = 1 AND recipe = '{recipes['cited']['recipe']}'",
    )
    assert computed["cited: verdicts"] == first["n"] - shared["n"] == reported.judging.judges[1].verdicts
    assert computed["cited: verdicts 2"] <= reported.judging.judges[2].verdicts

    # each trace is accounted for under both, and the numbers do not mix
    counts = "SELECT recipe, count(*) AS n, count(groundedness_score) AS g, count(citation_groundedness) AS c FROM trace_scores GROUP BY ALL"
    by = {r["recipe"]: r for r in read(world.warehouse, counts)}
    claims, cited = by[recipes["claims"]["recipe"]], by[recipes["cited"]["recipe"]]
    assert claims["n"] == cited["n"] == 45
    assert claims["g"] > 0 == claims["c"]
    assert cited["c"] > 0 == cited["g"]
    assert {r["recipe"] for r in read(world.warehouse, "FROM nightly_citations")} == {recipes["cited"]["recipe"]}
    assert {r["recipe"] for r in read(world.warehouse, "FROM nightly_groundedness")} == {recipes["claims"]["recipe"]}
    graded = "SELECT recipe, grade, sum(n)::INT AS n, sum(n_ungraded)::INT AS u FROM nightly_grades GROUP BY ALL"
    assert {(r["recipe"], r["n"], r["u"]) for r in read(world.warehouse, graded)} == {(r, 45, 0) for r in by}
    (segments,) = read(world.warehouse, "SELECT sum(segments_total)::INT AS t, sum(segments_judged + segments_unjudged + segments_abstained)::INT AS n FROM nightly_citations")  # fmt: skip
    assert segments["t"] == segments["n"]

    # every pair of both has its verdict, by the judge of both passes
    assert read(world.warehouse, "FROM pair_verdicts WHERE label IS NULL AND failure IS NULL") == []

    # and again: nothing
    before = tables(world.warehouse, {})
    again = measure(world.config, FIRST, FIRST)
    assert (again.traces, again.claims, again.pairs, again.judging.relevance, again.judging.scores) == (0, 0, 0, 0, 0)
    assert ([j.verdicts for j in again.judging.judges], again.judging.answers) == ([0, 0, 0], 0)
    assert leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect).returncode == 0
    assert tables(world.warehouse, {}) == before
    assert world.log.read_text().split() == paid

    # the report has pages of both
    night = world.out / "report" / str(FIRST)
    (beside,) = night.glob("cited-*/index.html")
    assert f'href="{beside.parent.name}/index.html"' in (night / "index.html").read_text()
    assert 'href="../index.html"' in beside.read_text()
    assert "Citation groundedness" in beside.read_text()
    pages = [*(world.out / "report").rglob("*.html")]
    assert len(pages) == 1 + 2 * (2 + 5)  # the list, and of each recipe a night, its explorer and five traces
    for page in pages:
        targets = re.findall(r'href="([^"#:]+)[#"]', page.read_text())
        assert [t for t in targets if not (page.parent / unquote(t)).is_file()] == [], page
    index = (world.out / "report" / "index.html").read_text()
    assert index.index(f'href="{FIRST}/index.html"') < index.index(f'href="{FIRST}/{beside.parent.name}/index.html"')


def test_recipes_share_their_models(world: World) -> None:
    claims, cited = build_contexts(world.config, FIRST, FIRST)
    judges: list[Judge] = [m.judge for m in (*claims.judges, *cited.judges)]
    assert len(judges) == 3
    assert len({id(j) for j in judges}) == 1
    assert claims.embedder is cited.embedder
    assert claims.grader is cited.grader is not None


def config_with(world: World, tmp_path: Path, **changes: Any) -> Path:
    config: dict[str, Any] = yaml.safe_load(world.config.read_text())
    config |= changes
    path = world.config.parent / f"{tmp_path.name}.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize(
    ("changes", "output"),
    [
        ({"recipe": {"judge": "out/replay.yaml"}}, ": recipes is beside recipe. Move that one into the list."),
        ({"recipes": []}, ": recipe is missing. Add it, or `recipes`"),
        ({"recipes": ["out/claims.yaml", "out/claims.yaml"]}, ": recipes has two recipes named 'claims'."),
        ({"recipes": ["out/claims.yaml", {**CLAIMS, "name": "other", "judge": "out/replay.yaml", "relevance": {"threads": 1}}]}, ": recipes has one recipe twice, as 'claims' and 'other'."),
        ({"recipes": [{"name": "x"}]}, ": recipes.0.judge is missing."),
        ({"recipes": [{**CITATIONS, "pairing": {"kind": "cited"}}]}, ": recipes.0 is a mapping. It has method citations and pairing.kind cited; set it to cited_together."),
        ({"recipes": [{"judge": "out/replay.yaml", "extractor": {"kind": "sentence"}}]}, ": recipes.0.extractor.kind is 'sentence'"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_place(
    world: World, tmp_path: Path, changes: dict[str, Any], output: str
) -> None:
    path = config_with(world, tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        build_contexts(path, FIRST, FIRST)
    assert str(caught.value).startswith(f"{path}{output}")


def test_a_mistake_in_a_recipes_own_file_names_that_file(world: World, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump({"judge": str(world.out / "replay.yaml"), "apps": {"a": {"kind": "x"}}}))
    with pytest.raises(ConfigError) as caught:
        build_contexts(config_with(world, tmp_path, recipes=[str(wrong)]), FIRST, FIRST)
    assert str(caught.value).startswith(f"{wrong}: apps.a.kind is 'x'")
