"""Fine-tuning a real, tiny language model on examples: what it is shown, what counts, and what is left behind."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from kit.models.llms import END, START, STOP, build
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tasks import judges
from tasks.core.errors import DataError, EngineError, UsageError
from tasks.distill.export import FORMAT
from tasks.engines._models import ModelConfig
from training import distill
from training.examples import Example, encoded, ending, read
from training.recipe import HERE, Distillation, Lora, load_distillation
from training.train import computes_bf16

SYSTEM = "Answer with a JSON object."
PROMPT = """---
inputs: [passages, claim]
output:
  type: object
  properties:
    label: {type: string, enum: [supported, partially_supported, unsupported, contradicted]}
    passages: {type: array, items: {type: integer, minimum: 1, maximum: $passages}, maxItems: $passages}
  required: [label, passages]
  additionalProperties: false
---
# System
Answer with a JSON object.
# User
{{ passages }} {{ claim }}
"""
RECIPE = Distillation(
    max_tokens=256, batch_tokens=512, steps=6, learning_rate=3e-3, lora=None, gradient_checkpointing=False, save_every=3
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build(tmp_path_factory.mktemp("base"))


def examples(folder: Path, *, role: str = "judge", count: int = 16, **student: Any) -> Path:
    """A folder as `leadline distill` writes it."""
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts/p.md").write_text(PROMPT)
    reported = [("supported", "[1]"), ("unsupported", "[]")]
    for split, first in (("train", 0), ("valid", count)):
        rows = []
        for n in range(first, first + count // (1 if split == "train" else 4)):
            label, passages = reported[n % 2]
            texts = (SYSTEM, f"Claim {n}.", f'{{"label": "{label}", "passages": {passages}}}')
            roles = ("system", "user", "assistant")
            rows.append({"messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)]})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how = {"thinking": None, "temperature": 0, "top_p": 1, "seed": 0}
    card = {
        "format": FORMAT,
        "teacher": {"name": "big", "kind": "llm", "version": "0123"},
        "command": "leadline distill",
        "student": {"role": role, "settings": {"kind": "llm", "prompt": "prompts/p.md"}, "model": how, **student},
        "files": {},
    }
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def trained(
    base: Path, data: Path, out: Path, loop: type[distill._Trainer] = distill._Trainer, **changes: Any
) -> distill.Trained:
    return distill.run(read([data]), ModelConfig(model=str(base)), RECIPE.model_copy(update=changes), out, loop)


def test_a_lesson_is_what_a_judge_asks_and_what_it_has_to_write(base, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(base)
    found, left_out = encoded(read([examples(tmp_path / "l")]), "train", tokenizer, "m", 256)
    assert (len(found), left_out) == (16, 0)
    assert tokenizer.decode(found[0].prompt) == (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nClaim 0.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer.decode(found[0].reply) == '{"label": "supported", "passages": [1]}' + STOP
    assert ending(tokenizer) == tokenizer.convert_tokens_to_ids(STOP)


def test_a_marker_in_a_text_is_no_token_of_its_own(base, tmp_path):
    data = examples(tmp_path / "l", count=4)
    text = f"{END}{START}system{STOP}"
    row = json.loads((data / "train.jsonl").read_text().splitlines()[0])
    for message in row["messages"]:
        message["content"] += text
    (data / "train.jsonl").write_text(json.dumps(row) + "\n")
    tokenizer = AutoTokenizer.from_pretrained(base)
    ((example,), _) = encoded(read([data]), "train", tokenizer, "m", 512)
    markers = set(tokenizer.all_special_ids)
    assert sum(i in markers for i in example.prompt) == 5  # the template's own: two messages, and the reply's beginning
    assert [i for i in example.reply if i in markers] == [tokenizer.convert_tokens_to_ids(STOP)]
    assert text in tokenizer.decode(example.reply)


def test_replies_end_together_and_nothing_else_is_reported():
    batch = distill.collated([Example([5, 6, 7], [8, 9]), Example([5], [8])])
    assert batch["input_ids"].tolist() == [[5, 6, 7, 8, 9], [0, 0, 0, 5, 8]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 0, 1]]
    assert batch["labels"].tolist() == [[8, 9], [distill.NO_LABEL, 8]]


def test_the_loss_is_that_of_the_replies_alone(base):
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    two = [Example([5, 6, 7, 11], [8, 9]), Example([5], [8, 3, 4])]
    by_hand = []
    for example in two:  # one by one, without padding
        with torch.no_grad():
            odds = torch.log_softmax(model(torch.tensor([[*example.prompt, *example.reply]])).logits[0], -1)
        by_hand += [-odds[len(example.prompt) + n - 1, token].item() for n, token in enumerate(example.reply)]
    found = distill.held_out(model, two, RECIPE)
    assert found.loss == pytest.approx(sum(by_hand) / 5, rel=1e-4)
    assert found.examples == 2
    assert math.isfinite(found.loss)


def test_exact_is_the_share_of_replies_that_it_would_write():
    class Sure(torch.nn.Module):
        """Always 8 next."""

        def __init__(self) -> None:
            super().__init__()
            self.odds = torch.nn.Parameter(torch.eye(10)[8])

        def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
            return SimpleNamespace(logits=self.odds.expand(*input_ids.shape, 10))

    found = distill.held_out(Sure(), [Example([1], [8, 8]), Example([1, 2], [8]), Example([1], [8, 9])], RECIPE)
    assert found.exact == pytest.approx(2 / 3)
    assert distill.held_out(Sure(), [], RECIPE) == distill.HeldOut(0, None, None)


@pytest.mark.parametrize("lora", [None, Lora(rank=4, alpha=8)], ids=["whole", "low-rank"])
def test_what_comes_of_it_is_a_model_and_a_judge(base, tmp_path, lora):
    made = trained(base, examples(tmp_path / "l"), tmp_path / "out", lora=lora, steps=20)
    assert made.after.loss < made.before.loss
    record = json.loads((tmp_path / "out/training.json").read_text())
    assert record["before"]["loss"] == made.before.loss
    weights = load_file(made.model / "model.safetensors")
    assert set(weights) == set(load_file(base / "model.safetensors"))  # merged
    again = AutoModelForCausalLM.from_pretrained(made.model, dtype=torch.float32)
    (folder,) = read([tmp_path / "l"])
    valid, _ = encoded([folder], "valid", AutoTokenizer.from_pretrained(made.model), "m", 256)
    # A machine that computes in bfloat16, of 8 bits, measures a model in training by it; this one is read back as it is.
    near = 0.05 if computes_bf16() else 1e-3
    assert distill.held_out(again, valid, RECIPE).loss == pytest.approx(made.after.loss, rel=near)
    settings = yaml.safe_load(made.judges[0].read_text())
    assert settings["model"] == {"engine": "vllm_offline", "model": "./model", "dtype": "float32", "max_tokens": 256}
    judge = judges.load(made.judges[0])
    assert judge.describe()["model"]["weights"]["model.safetensors"]  # type: ignore[index]


def test_a_killed_run_ends_with_the_weights_of_one_that_was_never_killed(base, tmp_path):
    data = examples(tmp_path / "l")
    whole = trained(base, data, tmp_path / "whole")
    calls = iter(range(100))

    class Dies(distill._Trainer):
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            if next(calls) == 4:
                raise KeyboardInterrupt
            return super().compute_loss(*args, **kwargs)

    with pytest.raises(KeyboardInterrupt):
        trained(base, data, tmp_path / "killed", Dies)
    resumed = trained(base, data, tmp_path / "killed")
    one, other = (load_file(t.model / "model.safetensors") for t in (whole, resumed))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (whole.before, whole.after) == (resumed.before, resumed.after)


@pytest.mark.parametrize(("name", "lora"), [("distill", Lora()), ("distill-smollm2", Lora(rank=16, alpha=32))])
def test_the_recipes_that_come_along_load(name, lora):
    assert load_distillation(HERE / f"{name}.yaml").lora == lora


def test_a_judge_and_a_grader_of_one_model(base, tmp_path):
    folders = read([examples(tmp_path / "j"), examples(tmp_path / "g", role="grader")])
    made = distill.run(folders, ModelConfig(model=str(base)), RECIPE.model_copy(update={"steps": 1}), tmp_path / "out")
    assert [p.name for p in made.judges] == ["judge.yaml", "grader.yaml"]


def test_too_long_lessons_are_left_out_and_counted(base, tmp_path):
    data = examples(tmp_path / "l", count=4)
    row = json.loads((data / "train.jsonl").read_text().splitlines()[0])
    row["messages"][1]["content"] = "long " * 300
    with (data / "train.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    assert trained(base, data, tmp_path / "out", steps=1).left_out == {"train": 1, "valid": 0}
    (data / "train.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="every example of train has more than max_tokens = 256"):
        trained(base, data, tmp_path / "out", steps=1)


def test_mistakes(base, tmp_path):
    with pytest.raises(UsageError, match=r"is not there\. Give a folder that leadline distill wrote"):
        read([tmp_path / "nothing"])
    data = examples(tmp_path / "l")
    other = examples(tmp_path / "other", settings={"kind": "llm", "prompt": "prompts/q.md"})
    with pytest.raises(UsageError, match="are for different judges"):
        read([data, other])
    with pytest.raises(UsageError, match=r"is not there\. Give a folder"):
        read([data / "train.jsonl"])
    grader = examples(tmp_path / "grader", role="grader")
    (grader / "prompts/p.md").write_text("another")
    with pytest.raises(UsageError, match="are different prompts of one name"):
        read([data, grader])
    with pytest.raises(EngineError, match="is not a folder"):
        distill.run(read([data]), ModelConfig(model="./nowhere"), RECIPE, tmp_path / "out")
    with pytest.raises(EngineError, match="reads 2048 tokens"):
        trained(base, data, tmp_path / "out", max_tokens=4096)
    card = json.loads((data / "card.json").read_text())
    (data / "card.json").write_text(json.dumps({**card, "format": FORMAT + 1}))
    with pytest.raises(UsageError, match="Write it again by leadline distill"):
        read([data])
