"""A judge teaches a tiny language model, from the lake to the next night: export, training, vLLM, metaeval, nightly.

The teacher goes by one word of a claim, which a model of two layers learns in some seconds. That the student learns it,
and that every step takes what the one before left, is what is shown here; how good a real student gets is not.
"""

import importlib.util
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import in_process
from kit.models.llms import TEXTS, build
from kit.worlds import all_stages, make_world, read, trace, write

from flows.__main__ import main
from tasks import graders, judges
from tasks.analysis.metaeval import metaeval, suite
from tasks.analysis.metaeval.pass_rates import Result
from tasks.claims import extract as claims
from tasks.core.types import Judge
from tasks.ingest import ingest
from tasks.judging import pairs, verdicts
from tasks.judging.pairs import pair_parts
from tasks.judging.verdicts import PAIR_COLUMNS, requests_of
from tasks.run.build import build_context
from tasks.run.plan import trace_parts
from tasks.scoring import score
from training.__main__ import main as training

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
]
PROMPT = """---
inputs: [passages, claim]
output:
  type: object
  properties:
    label:
      type: string
      enum: [supported, partially_supported, unsupported, contradicted]
    passages:
      type: array
      items: {type: integer, minimum: 1, maximum: $passages}
      maxItems: $passages
  required: [label, passages]
  additionalProperties: false
---
# System
Is the claim supported by the passages? Answer with a JSON object.
# User
{{ passages }}

{{ claim }}
"""  # the released one is five times as long
RULE = {"keeps": "supported", "shares": "partially_supported", "drops": "unsupported", "hides": "contradicted"}
THINGS = [
    "backup",
    "client",
    "server",
    "folder",
    "quota",
    "link",
    "token",
    "upload",
    "mirror",
    "index",
    "shard",
    "audit",
]
LEARNED, LATER = date(2026, 11, 1), date(2026, 11, 2)
RECIPE = {
    "max_tokens": 512, "batch_tokens": 2048, "steps": 120, "learning_rate": 3e-3, "lora": None,
    "gradient_checkpointing": False,
}  # fmt: skip


@dataclass(frozen=True)
class Taught:
    """What the steps left."""

    root: Path
    card: dict[str, Any]
    record: dict[str, Any]
    before: list[Result]
    after: list[Result]
    labels: dict[str, str]  # of the claims of the night that the student judged


def sentence(one: str, does: str, other: str) -> str:
    return f"The {one} {does} the {other}."


def night(day: date, verbs: list[str], of: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """A question for each pair of things, one of the verbs in its answer, and one chunk."""
    return [
        trace(
            f"{day}-{n}",
            timestamp=f"{day}T12:00:00Z",
            question=f"What does the {one} do with the {other}?",
            answer=sentence(one, verbs[n % len(verbs)], other),
            chunks=[{"chunk_id": "1", "text": f"A {one} and the {other}."}],
        )
        for n, (one, other) in enumerate(of)
    ]


def teach(world: Any, day: date) -> None:
    """The replay judge says of the day's requests what the rule says."""
    ctx = build_context(world.config, day, day)
    for stage in (ingest.ingest, claims.extract_claims, pairs.plan_pairs):
        stage(ctx)
    lines = []
    for part in trace_parts(ctx):
        looks = [p.read(PAIR_COLUMNS) for p in pair_parts(ctx, part, ctx.judges[0])]
        keys = {key for look in looks for key in look["request_key"].to_pylist()}
        for request in requests_of(ctx, part, looks, keys):
            label = RULE[next(verb for verb in RULE if verb in request.hypothesis)]
            lines.append(json.dumps({"key": request.key, "label": label, "p_supported": 0.9}))
    ctx.close()
    (world.out / "said.jsonl").write_text("\n".join(lines) + "\n")
    (world.out / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "records": "said.jsonl"}))


def cases(path: Path) -> suite.Suite:
    """Answers of which every statement is borne out, or none is; things that the examples did not pair so."""
    rows = []
    for n, (does, right) in enumerate(product(["keeps", "hides", "drops"], range(2))):
        one, other = THINGS[n], THINGS[-1 - n]
        rows.append({
            "input": f"What does the {one} do with the {other}?",
            "actual_output": f"{sentence(one, does, other)[:-1]} [1].",
            "references": [f"A {one} and the {other}."],
            "conditions": {
                "answer_relevancy_condition": ">=1", "completeness_condition": ">=1",
                "faithfulness_condition": "==1" if does == "keeps" else "==0", "usefulness_condition": "==None",
            },
            "metadata": {"test_type": right, "goal": ""},
        })  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return suite.read(path)


def run(command: Callable[[list[str]], None], *args: object) -> None:
    with pytest.raises(SystemExit) as ended:
        command(list(map(str, args)))
    assert ended.value.code == 0


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Taught:
    root = tmp_path_factory.mktemp("distill")
    with pytest.MonkeyPatch.context() as patch, in_process():
        world = make_world(root)
        pairs_of = [(a, b) for a, b in product(THINGS, THINGS) if a != b]
        write(root / "logs" / "a.jsonl", night(LEARNED, list(RULE), pairs_of))
        teach(world, LEARNED)
        judged = build_context(world.config, LEARNED, LEARNED)
        for stage in (pairs.plan_pairs, verdicts.judge_pairs, score.score_traces):
            stage(judged)
        judged.close()

        (root / "prompt.md").write_text(PROMPT)
        spoken = [PROMPT, *TEXTS, *(sentence(a, v, b) for v in RULE for a, b in pairs_of[:40])]
        build(root / "base", texts=spoken, vocabulary=1200, spread=0.6)
        student = {"kind": "llm", "prompt": "prompt.md", "max_reply_tokens": 32}
        model = {"model": "./base", "dtype": "float32", "max_tokens": 512}
        (root / "student.yaml").write_text(yaml.safe_dump({**student, "model": model}))
        options = ("--config", world.config, "--judge", "replay", "--student", root / "student.yaml")
        run(main, "distill", *options, "-o", root / "examples", "--valid-share", 0.25, "--balance", 1)
        (root / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
        options = ("--data", root / "examples", "--model", root / "base", "--recipe", root / "recipe.yaml")
        run(training, "distill", *options, "--out", root / "out")

        asked = cases(root / "cases.jsonl")
        untaught = graders.opened(root / "student.yaml")
        before = metaeval.evaluate(untaught, asked)
        untaught.close()

        judge = judges.load(root / "out" / "judge.yaml")  # one load of vLLM for the suite and the night
        patch.setattr(judges, "load", lambda path: judge if path.name == "judge.yaml" else open_judge(path))
        after = metaeval.evaluate(graders.opened(root / "out" / "judge.yaml"), asked)
        config = yaml.safe_load(world.config.read_text())
        config["recipe"]["judge"] = "out/judge.yaml"
        (root / "later.yaml").write_text(yaml.safe_dump(config))
        write(root / "logs" / "b.jsonl", night(LATER, ["keeps", "drops"], pairs_of[:8]))
        all_stages(build_context(root / "later.yaml", LATER, LATER))
        labels = read(world.warehouse, f"SELECT text, label FROM claim_details WHERE date = '{LATER}'")
        judge.close()
    return Taught(
        root,
        json.loads((root / "examples/card.json").read_text()),
        json.loads((root / "out/training.json").read_text()),
        before,
        after,
        {row["text"]: row["label"] for row in labels},
    )


open_judge = judges.load


def passed(results: list[Result]) -> float:
    own = [r for r in results if r.grade == "faithfulness"]  # the only grade that asks the judge of claims
    return sum(r.outcome == "passed" for r in own) / len(own)


def test_as_many_examples_of_each_label(taught: Taught) -> None:
    kept = taught.card["examples"]["plain"]["kept"]
    assert all(set(kept[split]) == set(RULE.values()) for split in kept)
    assert all(len(set(kept[split].values())) == 1 for split in kept)


def test_held_out_replies_get_likelier(taught: Taught) -> None:
    before, after = taught.record["before"], taught.record["after"]
    print(before, after)
    assert before["examples"] == after["examples"] > 4
    assert after["loss"] < before["loss"] / 10
    assert (before["exact"], after["exact"]) == (0, pytest.approx(1, abs=0.2))


def test_its_pass_rate_rises(taught: Taught) -> None:
    print(passed(taught.before), passed(taught.after))
    assert passed(taught.after) == 1 > passed(taught.before)


def test_it_judges_a_night(taught: Taught) -> None:
    assert len(taught.labels) == 8
    right = Counter(label == RULE[next(v for v in RULE if v in text)] for text, label in taught.labels.items())
    assert right[True] >= 7, taught.labels


def test_its_version_is_a_hash_of_the_weights(taught: Taught) -> None:
    judge: Judge = open_judge(taught.root / "out/judge.yaml")
    weights = judge.describe()["model"]["weights"]  # type: ignore[index]
    assert "model.safetensors" in weights
    assert judge.version != open_judge(taught.root / "student.yaml").version
