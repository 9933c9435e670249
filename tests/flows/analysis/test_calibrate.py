"""`leadline calibrate`: the thresholds that it prints do what it says, and what it says of mistakes."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Command
from kit.worlds import FIRST, World, all_stages, make_traces, make_world, read, write

from tasks.analysis.calibrate import Calibrated, Claims, Traces
from tasks.publish.documents.calibration import shared
from tasks.review.load import import_reviews
from tasks.run.build import build_context

STAGES = {
    "retrieval": "context_relevance",
    "answerability": "answerability",
    "faithfulness": "weakest_support",
    "answer_relevance": "answer_relevance",
}


@pytest.fixture
def command(command: Command) -> Command:
    return partial(command, "calibrate")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Nights of a judge that calls most claims supported, with a probability; every ninth trace has no chunks."""
    root = tmp_path_factory.mktemp("calibrate")
    shares = {"supported": 0.5, "partially_supported": 0, "unsupported": 0.5, "contradicted": 0}
    world = make_world(root, judge={"shares": shares})
    write(root / "logs" / "a.jsonl", make_traces(3, 180, days=2))
    all_stages(build_context(world.config, FIRST, FIRST.replace(day=2)))
    return world


def scores(world: World) -> list[dict[str, Any]]:
    columns = ", ".join(STAGES.values())
    return read(world.warehouse, f"SELECT trace_id, date, {columns} FROM trace_scores ORDER BY trace_id")


def labels(world: World, path: Path, **more: object) -> Path:
    """People who find wrong exactly what has a weakly supported claim, or no chunks."""
    rows = (
        {"trace_id": r["trace_id"], "label": "right" if (r["weakest_support"] or 0) >= 0.6 else "wrong", **more}
        for r in scores(world)
    )
    write(path, rows)
    return path


def pasted(out: str, after: str) -> dict[str, Any]:
    """The YAML below a comment of the output."""
    block = out.split(f"# {after}\n")[1].split("\n\n", maxsplit=1)[0]
    return dict(yaml.safe_load(block))


def sent(world: World, thresholds: dict[str, float]) -> list[dict[str, Any]]:
    return [r for r in scores(world) if all((r[c] or -1) >= thresholds[s] for s, c in STAGES.items())]


def test_the_thresholds_to_paste_send_what_it_says_and_nothing_wrong(
    judged: World, command: Command, tmp_path: Path
) -> None:
    file = labels(judged, tmp_path / "labels.jsonl")
    code, out, err = command("--error", 0.1, "--labels", file, "--config", judged.config)
    assert (code, err) == (0, "")
    found = pasted(out, "recipe claims")["waterfall"]
    assert set(found) == set(STAGES)
    passing = sent(judged, found)
    # The weakest claim tells all, and it alone: what is sent is what is right, but for the few that 10% allow.
    assert found["faithfulness"] > 0.4
    assert [found[s] for s in ("retrieval", "answerability", "answer_relevance")] == [0, 0, 0]
    right = [r for r in passing if r["weakest_support"] >= 0.6]
    assert len(right) >= 0.9 * len(passing) > 0
    assert f"these thresholds send {len(passing)}, {len(passing) - len(right)} of them wrong" in out
    assert f"{len(scores(judged))} labeled answers" in out


def test_imported_labels_give_the_same_as_their_file(judged: World, command: Command, tmp_path: Path) -> None:
    file = labels(judged, tmp_path / "labels.jsonl")
    options = ("--error", 0.2, "--confidence", 0.9, "--format", "json", "--config", judged.config)
    code, from_file, _ = command(*options, "--labels", file)
    assert code == 0
    ctx = build_context(judged.config, FIRST, FIRST)
    import_reviews(ctx, file)
    try:
        code, imported, _ = command(*options)
        assert (code, imported) == (0, from_file)
        code, first_day, _ = command(*options, "--from", FIRST, "--to", FIRST)
        of_day = [r for r in scores(judged) if r["date"] == FIRST]
        assert (code, json.loads(first_day)["labeled"]) == (0, len(of_day))
    finally:
        for part in (judged.lake / "reviews").rglob("*.parquet"):
            part.unlink()
    found = json.loads(from_file)
    assert found["waterfall"]["confidence"] == 0.9
    assert found["waterfall"]["n_missing"] == sum(r["weakest_support"] is None for r in scores(judged))
    coverages = [p["coverage"] for p in found["waterfall"]["curve"]["points"]]
    assert coverages == sorted(coverages)
    fitted = found["waterfall"]["rule"]["fitted"]
    assert fitted["n"] == len(sent(judged, found["waterfall"]["thresholds"]))


def claim_labels(world: World) -> Iterable[dict[str, Any]]:
    """People who find supported what the judge finds likely."""
    for row in read(world.warehouse, "SELECT trace_id, claim_id, p_supported FROM claim_results ORDER BY claim_id"):
        if row["p_supported"] is not None:
            label = "supported" if row["p_supported"] >= 0.7 else "unsupported"
            yield {"trace_id": row["trace_id"], "claim_id": row["claim_id"], "label": label}


def test_labels_of_claims_give_the_judge_its_bands_and_the_waterfall_wrong_answers(
    judged: World, command: Command, tmp_path: Path
) -> None:
    rows = list(claim_labels(judged))
    write(tmp_path / "claims.jsonl", rows)
    options = ("--error", 0.1, "--labels", tmp_path / "claims.jsonl", "--config", judged.config)
    code, out, _ = command(*options, "--format", "json")
    found = json.loads(out)
    (judge,) = found["judges"]
    bands = judge["bands"]
    assert (code, judge["judge"], bands["n"]) == (0, "replay", len(rows))
    assert bands["n_supported"] == sum(r["label"] == "supported" for r in rows)
    # People agree with the judge from 0.7 on. Of claims above `high`, at most a tenth may lie below that.
    assert 0.4 < bands["high"] <= 0.7
    assert bands["above"]["wrong"] <= 0.1
    # An answer is wrong where a claim of it is; traces without a labeled claim are none of the labeled ones.
    wrong = {r["trace_id"] for r in rows if r["label"] == "unsupported"}
    assert found["labeled"] == len({r["trace_id"] for r in rows})
    assert found["waterfall"]["n_wrong"] == len(wrong)
    # The judge's kind has no thresholds in its file, so that there is nothing to paste.
    code, out, _ = command(*options)
    assert (code, "Judge replay" in out, "# judge" in out) == (0, True, False)


def test_what_was_picked_for_its_labels_does_not_count(judged: World, command: Command, tmp_path: Path) -> None:
    file = labels(judged, tmp_path / "labels.jsonl", sampling="misused")
    code, _, err = command("--error", 0.1, "--labels", file, "--config", judged.config)
    assert code == 3
    assert "0 answers" in err
    assert "180 more answers were picked for review" in err


def test_a_target_out_of_reach_sends_nothing_and_says_so(judged: World, command: Command, tmp_path: Path) -> None:
    write(tmp_path / "labels.jsonl", ({"trace_id": r["trace_id"], "label": "wrong"} for r in scores(judged)))
    code, out, _ = command("--error", 0.3, "--labels", tmp_path / "labels.jsonl", "--config", judged.config)
    assert (code, "nothing may be sent" in out) == (0, True)
    found = pasted(out, "recipe claims")["waterfall"]
    assert set(found.values()) == {1.0}
    assert sent(judged, found) == []


def test_the_page_stands_alone(judged: World, command: Command, tmp_path: Path) -> None:
    file, page = labels(judged, tmp_path / "labels.jsonl"), tmp_path / "page.html"
    options = ("--error", 0.1, "--labels", file, "--format", "html", "--config", judged.config)
    code, _, _ = command(*options, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert code == 0
    assert text.count("<svg aria-hidden") == 1
    assert "by retrieval alone" in text
    assert '<link rel="stylesheet"' not in text
    assert "src=" not in text
    code, _, err = command(*options, "-o", tmp_path)
    assert (code, f"--output {tmp_path} is a folder." in err) == (2, True)


def test_where_every_label_lacks_a_number_nothing_is_sent_and_nothing_is_nan(
    judged: World, command: Command, tmp_path: Path
) -> None:
    """Answers without chunks have no retrieval to check; twenty labels are enough at 20%."""
    bare = [r["trace_id"] for r in scores(judged) if r["context_relevance"] is None]
    write(tmp_path / "labels.jsonl", ({"trace_id": trace_id, "label": "right"} for trace_id in bare))
    page = tmp_path / "page.html"
    options = ("--error", 0.2, "--labels", tmp_path / "labels.jsonl", "--config", judged.config)
    code, out, _ = command(*options)
    assert command(*options, "--format", "html", "-o", page)[0] == 0
    assert (code, len(bare)) == (0, 20)
    assert "nothing may be sent. 20 of 20 lack a signal" in out
    assert "nan" not in out
    assert "Each of 20 labeled answers lacks the signal of a stage" in page.read_text(encoding="utf-8")


def test_brackets_in_a_name_are_no_markup(judged: World, command: Command, tmp_path: Path) -> None:
    settings = yaml.safe_load(judged.config.read_text())
    settings["recipe"]["name"] = "claims [/b]"
    config = judged.config.with_name("named.yaml")
    config.write_text(yaml.safe_dump(settings))
    file = labels(judged, tmp_path / "labels.jsonl")
    code, out, _ = command("--error", 0.1, "--labels", file, "--config", config)
    assert (code, "Waterfall of recipe claims [/b]" in out) == (0, True)


def test_a_shadow_is_left_out_unless_it_is_named(judged: World, command: Command, tmp_path: Path) -> None:
    settings = yaml.safe_load(judged.config.read_text())
    (judged.out / "other.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": 9}))
    settings["recipe"]["shadow"] = {"judge": f"{judged.out.name}/other.yaml"}
    config = judged.config.with_name("shadowed.yaml")
    config.write_text(yaml.safe_dump(settings))
    file = labels(judged, tmp_path / "labels.jsonl")
    options = ("--error", 0.1, "--labels", file, "--config", config, "--format", "json")
    code, out, _ = command(*options)
    assert (code, [json.loads(line)["recipe"] for line in out.splitlines()]) == (0, ["claims"])
    code, _, err = command(*options, "--recipe", "claims, shadow other")
    assert (code, "recipe claims, shadow other: 0 answers" in err) == (3, True)  # it has judged nothing yet


def test_what_holds_for_all_recipes_is_stated_once(judged: World, command: Command, tmp_path: Path) -> None:
    settings = yaml.safe_load(judged.config.read_text())
    first = settings.pop("recipe")
    judge = str(judged.out / Path(first["judge"]).name)
    for name, penalty in (("claims", 2.0), ("strict", 3.0)):
        recipe = {**first, "name": name, "judge": judge, "scoring": {"misuse_penalty": penalty}}
        (judged.out / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
    config = judged.config.with_name("both.yaml")
    config.write_text(
        yaml.safe_dump({**settings, "recipes": [f"{judged.out.name}/{n}.yaml" for n in ("claims", "strict")]})
    )
    file = labels(judged, tmp_path / "labels.jsonl")
    lines = file.read_text().splitlines()
    write(file, [*lines, json.dumps({"trace_id": "nobody", "label": "right"})])
    code, out, err = command("--error", 0.1, "--labels", file, "--config", config)
    assert code == 0
    assert ("Waterfall of recipe claims" in out, "Waterfall of recipe strict" in out) == (True, True)
    assert err.count("note") == 1  # of the line that is no label
    assert err.count("are not valid labels") == 1


@pytest.mark.parametrize(("picked", "once"), [((2, 2), 1), ((2, 3), 0)])
def test_what_was_left_out_of_all_recipes_alike_is_no_remark_of_each(picked: tuple[int, int], once: int) -> None:
    def found(n: int) -> Calibrated:
        none = np.zeros(0)
        traces = Traces((), (), np.zeros((0, 4)), none.astype(bool), picked=n, undecided=0)
        claims = Claims(
            "j",
            "replay",
            1,
            last=True,
            questions=(),
            p_supported=none,
            supported=none.astype(bool),
            without=0,
            picked=7,
        )
        return Calibrated("r", "r", cascade=False, traces=traces, waterfall=None, judges=((claims, None),))

    lines = shared([found(n) for n in picked])
    assert sum("2 answers" in line for line in lines) == once
    assert sum("7 claims" in line for line in lines) == 1
    assert shared([found(2)]) == []  # of one recipe they are said in their place


def test_mistakes(judged: World, command: Command, tmp_path: Path) -> None:
    file, config = labels(judged, tmp_path / "labels.jsonl"), ("--config", judged.config)
    code, _, err = command("--error", 10, "--labels", file, *config)
    assert (code, "--error 10.0: not between 0 and 1" in err) == (2, True)
    code, _, err = command("--error", 0.1, "--confidence", 0.3, "--labels", file, *config)
    assert (code, "--confidence 0.3: not from 0.5" in err) == (2, True)
    code, _, err = command("--error", 0.1, "--recipe", "claim", "--labels", file, *config)
    assert (code, "Did you mean 'claims'" in err) == (2, True)
    code, _, err = command("--error", 0.1, "--format", "jsn", "--labels", file, *config)
    assert (code, "Did you mean 'json'" in err) == (2, True)
    code, _, err = command("--error", 0.1, "--labels", tmp_path / "none.jsonl", *config)
    assert (code, "there is no such file" in err) == (1, True)
    code, _, err = command("--error", 0.1, *config)  # nothing was imported
    assert (code, "0 answers, 0 claims" in err, "at least 26 labeled answers" in err) == (3, True, True)
    assert "for the waterfall (26 more), or as many claims for a judge (26 more)" in err
    write(tmp_path / "one.jsonl", [{"trace_id": "t0001", "label": "right"}])
    code, _, err = command("--error", 0.1, "--labels", tmp_path / "one.jsonl", *config)
    assert (code, "for the waterfall (25 more)" in err) == (3, True)
    write(tmp_path / "bad.jsonl", [{"trace_id": "t0001", "label": "rihgt"}])
    code, _, err = command("--error", 0.1, "--labels", tmp_path / "bad.jsonl", *config)
    assert (code, "unknown_label 1" in err, "line 1" in err) == (3, True, True)
