"""A nightly with a cascade, by the command: its stages, its accounts, what it prints, and that it is done only once."""

from pathlib import Path

import pytest
import yaml
from kit.commands import leadline
from kit.worlds import FIRST, World, last_run, make_traces, make_world, read, tables, write

from flows.nightly.dry_run import measure, show
from flows.nightly.summary import tokens
from tasks.run.result import StageResult

SHARES = {
    "supported": 0.5, "partially_supported": 0.1, "unsupported": 0.2, "contradicted": 0.1, "abstained": 0.05,
    "failure": 0.05,
}  # fmt: skip
BAND = [0.3, 0.8]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("cascade")
    step = {
        "judge": "out/dear.yaml",
        "band": BAND,
        "pairing": {"kind": "all_chunks", "pack_words": 40, "window_words": 20},
    }
    recipe = {"judge": "out/replay.yaml", "relevance": {"threads": 1}, "cascade": [step]}
    world = make_world(root, judge={"shares": SHARES}, recipe=recipe)
    dear = {"kind": "replay", "seed": 1, "shares": SHARES, "log": str(world.log)}
    (world.out / "dear.yaml").write_text(yaml.safe_dump(dear))
    write(root / "logs" / "a.jsonl", make_traces(5, 40, days=1))
    return world


@pytest.mark.slow
def test_a_night_with_two_judges(
    world: World, without_prefect: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    reported = measure(world.config, FIRST, FIRST).judging
    assert [(j.judge, j.share) for j in reported.judges] == [("replay", None), ("dear", 1.0)]
    output = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    assert output.returncode == 0, output.stderr.decode()
    run = last_run(world.warehouse)
    computed = {name: stage["computed"] for name, stage in run["stages"].items()}
    looks = [name for name in computed if name.startswith(("verdicts", "joint pairs"))]
    assert looks == ["verdicts", "joint pairs", "verdicts 2", "joint pairs 2"]
    assert computed["verdicts"] == reported.judges[0].verdicts
    assert 0 < computed["verdicts 2"] <= reported.judges[1].verdicts

    # who was asked, and what it cost
    paid = world.log.read_text().split()
    judging = [s for s in run["stages"].values() if s["judge_version"]]
    assert run["verdicts_computed"] == len(paid) == sum(s["computed"] for s in judging)
    versions = read(world.warehouse, "SELECT judge_version, judge_versions FROM recipes")[0]
    assert [s["judge_version"] for s in judging] == [v for v in versions["judge_versions"] for _ in range(2)]
    counts = "SELECT judge_version, count(*) AS n FROM verdicts GROUP BY ALL"
    assert {r["judge_version"] for r in read(world.warehouse, counts)} == set(versions["judge_versions"])
    assert run["judge_version"] == versions["judge_version"]
    kinds = read(world.warehouse, "SELECT kind, count(*) AS n FROM judges GROUP BY ALL ORDER BY kind")
    assert kinds == [{"kind": "cascade", "n": 1}, {"kind": "replay", "n": 2}]

    # every look has its verdict, by the judge of its stage
    assert read(world.warehouse, "FROM pair_verdicts WHERE label IS NULL AND failure IS NULL") == []
    wrong = "FROM pair_verdicts JOIN recipes USING (recipe) WHERE pair_verdicts.judge_version <> judge_versions[pair_verdicts.stage]"
    assert read(world.warehouse, wrong) == []
    assert {
        r["pair_kind"] for r in read(world.warehouse, "SELECT DISTINCT pair_kind FROM pair_verdicts WHERE stage = 2")
    } >= {"pack"}

    # exactly the uncertain claims went on
    sure = f"p_supported < {BAND[0]} OR p_supported >= {BAND[1]}"
    first = "SELECT claim_id, max(p_supported) AS p_supported, bool_or(failure IS NOT NULL) AS failed FROM pair_verdicts WHERE stage = 1"
    strays = f"""
        FROM ({first} GROUP BY claim_id) AS f JOIN claim_results AS r USING (claim_id)
        WHERE r.stage_asked = 2 AND ({sure.replace("p_supported", "f.p_supported")}) AND NOT f.failed
            AND NOT EXISTS (FROM pair_verdicts AS l WHERE l.claim_id = f.claim_id AND l.stage = 1 AND l.label = 'abstained')
    """
    assert read(world.warehouse, strays) == []
    stayed = f"FROM claim_results WHERE stage_asked = 1 AND (NOT ({sure}) OR status IN ('unjudged', 'abstained'))"
    assert read(world.warehouse, stayed) == []
    (went,) = read(world.warehouse, "SELECT count(*) AS n FROM claim_results WHERE stage_asked > 1")
    (night,) = read(world.warehouse, "SELECT sum(claims_escalated)::INT AS n FROM nightly_groundedness")
    assert night == went
    (asked,) = read(world.warehouse, "SELECT count(*) AS n FROM claim_results WHERE n_pairs > 0")
    note = f"Escalated {went['n'] / asked['n']:.1%} of {asked['n']:,} claims to judge dear."
    assert note in run["notes"]
    assert note in output.stdout.decode()

    # and again: nothing
    before = tables(world.warehouse, {})
    assert [(j.verdicts, j.joint_pairs, j.share) for j in measure(world.config, FIRST, FIRST).judging.judges] == [
        (0, 0, None)
    ] * 2
    show(measure(world.config, FIRST, FIRST))
    printed = " ".join(capsys.readouterr().out.split())
    assert "verdicts to judge by dear" in printed
    assert "Judging by dear reads about 0 tokens: about 0.0 minutes." in printed
    assert leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect).returncode == 0
    assert tables(world.warehouse, {}) == before
    assert world.log.read_text().split() == paid


def test_a_dry_run_says_what_it_assumes(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh = tmp_path / "out.yaml"
    config = yaml.safe_load(world.config.read_text())
    config |= {
        "lake": str(tmp_path / "lake"),
        "sources": [{"kind": "jsonl", "paths": [f"{world.config.parent}/logs/*"]}],
    }
    config["recipe"]["judge"] = str(world.out / "replay.yaml")
    config["recipe"]["cascade"][0]["judge"] = str(world.out / "dear.yaml")
    fresh.write_text(yaml.safe_dump(config))
    show(measure(fresh, FIRST, FIRST))
    printed = " ".join(capsys.readouterr().out.split())
    assert "tokens: no measured rate yet. Judging by dear reads about" in printed
    assert "tokens if all claims go on to it: no measured rate yet. Nothing was changed." in printed


def test_tokens_are_reported_apart_where_a_model_writes() -> None:
    assert tokens(StageResult("verdicts", tokens_in=172_447)) == "172,447"
    assert (
        tokens(StageResult("verdicts", tokens_in=172_447, tokens_cached=90_000, tokens_out=512))
        == "172,447 / 90,000 / 512"
    )
