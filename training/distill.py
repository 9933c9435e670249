"""Fine-tunes a small open language model on what a strong judge has judged (docs/methods.md#judging-the-judges).

Hugging Face's Trainer with PEFT, on one GPU or a CPU. The loss is that of the replies alone. A killed run goes on from
its last checkpoint. What comes of it is a model's folder that vLLM serves and a judge's file beside it. Left out:
whether the student is good enough, which `leadline metaeval` and people's labels tell.
"""

import hashlib
import inspect
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments, set_seed

from tasks.core import keys
from tasks.core.errors import DataError
from tasks.distill.export import PROMPTS
from tasks.engines import _models
from training import examples as reading
from training.examples import Example, Folder
from training.recipe import Distillation
from training.train import Batches, computes_bf16, last_checkpoint

WHAT = "language model"
NO_LABEL = -100  # positions that are not of a reply


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How well a model gives the replies that were held out.

    Attributes:
        examples: How many there are.
        loss: Mean negative log-likelihood of a token of a reply, in nats; None where nothing is held out.
        exact: Share of the replies of which every token is the likeliest one: what it would write by itself.
    """

    examples: int
    loss: float | None
    exact: float | None


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a run.

    Attributes:
        judges: Files that a recipe or `leadline metaeval` can name.
        left_out: Lessons that are too long, by split.
    """

    model: Path
    judges: tuple[Path, ...]
    before: HeldOut
    after: HeldOut
    left_out: dict[str, int]


class _Trainer(Trainer):  # type: ignore[misc]
    """The Trainer with batches of like length, and logits where there are replies only."""

    batches: Batches

    def get_train_dataloader(self) -> DataLoader[Any]:
        loader = DataLoader(self.train_dataset, batch_sampler=self.batches, collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)  # type: ignore[no-any-return]

    def compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, torch.Tensor], return_outputs: bool = False, **_: object
    ) -> torch.Tensor | tuple[torch.Tensor, Any]:
        logits, labels = replied(model, inputs)
        value = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL)
        return (value, logits) if return_outputs else value


def run(
    folders: Sequence[Folder],
    base: _models.ModelConfig,
    recipe: Distillation,
    out: Path,
    loop: type[_Trainer] = _Trainer,
) -> Trained:
    """Trains, going on from the last checkpoint in `out`.

    Args:
        folders: From `examples.read`.
        base: The model to start from: a folder, or a commit on the hub.
        out: Where the model, the judge's file and the checkpoints go.
        loop: The steps of training.

    Raises:
        DataError: There is no example to learn from.
        EngineError: The model is not there, or can't be loaded.
    """
    set_seed(recipe.seed)
    name, options = _models.source(base, WHAT)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, **options)
        own = AutoConfig.from_pretrained(name, **options)
    except Exception as error:  # the libraries' many kinds
        raise _models.load_error(base, WHAT, error) from error
    _models.check_positions(base, WHAT, own, recipe.max_tokens)
    shown = f"{WHAT} {base.model!r}"
    train, too_long = reading.encoded(folders, "train", tokenizer, shown, recipe.max_tokens)
    valid, too_long_valid = reading.encoded(folders, "valid", tokenizer, shown, recipe.max_tokens)
    if not train:
        raise DataError(f"{', '.join(str(f.path) for f in folders)}: there is no example to learn from.")
    model = _prepared(name, options, recipe)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    before = held_out(model, valid, recipe)
    checkpoints = out / f"checkpoints-{_decides(recipe, train, base)}"
    batches = Batches([example.tokens for example in train], recipe.batch_tokens, recipe.seed)
    steps = recipe.steps or math.ceil(recipe.epochs * len(batches))
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=steps,
        lr_scheduler_type="linear",
        warmup_steps=int(recipe.warmup * steps),
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        max_grad_norm=1.0,
        bf16=computes_bf16(),
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=recipe.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False},
        save_strategy="steps",
        save_steps=recipe.save_every,
        save_total_limit=1,
        logging_steps=25,
        report_to=[],
        seed=recipe.seed,
        data_seed=recipe.seed,
        remove_unused_columns=False,
        dataloader_num_workers=0,
    )
    trainer = loop(model=model, args=arguments, train_dataset=train, data_collator=collated)
    trainer.batches = batches
    trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    after = held_out(trainer.model, valid, recipe)
    dtype = getattr(own, "dtype", None) or torch.float32
    merged = trainer.model.merge_and_unload() if recipe.lora is not None else trainer.model
    place = out / "model"
    shutil.rmtree(place, ignore_errors=True)
    merged.to(dtype).save_pretrained(place)
    tokenizer.save_pretrained(place)
    files = tuple(_judge_file(folder, recipe, str(dtype).removeprefix("torch."), out) for folder in folders)
    trained = Trained(place, tuple(dict.fromkeys(files)), before, after, {"train": too_long, "valid": too_long_valid})
    _record(trained, folders, base, recipe, out)
    return trained


def collated(batch: Sequence[Example]) -> dict[str, torch.Tensor]:
    """Lessons as one batch, padded at the left, so that all replies end together.

    Returns:
        `input_ids`, `attention_mask` and `position_ids`: (examples, longest). `labels`: (examples, longest reply).
    """
    longest, replies = max(example.tokens for example in batch), max(len(example.reply) for example in batch)
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full((len(batch), replies), NO_LABEL)
    for row, example in enumerate(batch):
        ids[row, -example.tokens :] = torch.tensor([*example.prompt, *example.reply])
        mask[row, -example.tokens :] = 1
        labels[row, -len(example.reply) :] = torch.tensor(example.reply)
    positions = (mask.cumsum(dim=1) - 1).clamp_min(0)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "labels": labels}


def replied(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model says of each place of the replies, and what stands there.

    Most models can leave out the logits of all other places, which would take more memory than everything else.

    Returns:
        Logits (examples, longest reply, vocabulary) in float32, and labels (examples, longest reply).
    """
    labels = inputs["labels"]
    places = labels.shape[1]
    given = {name: value for name, value in inputs.items() if name != "labels"}
    inner = model.get_base_model() if isinstance(model, PeftModel) else model
    if "logits_to_keep" in inspect.signature(inner.forward).parameters:
        given["logits_to_keep"] = places + 1  # type: ignore[assignment]
    logits = model(**given, use_cache=False).logits[:, -places - 1 : -1]
    return logits.float(), labels


@torch.no_grad()
def held_out(model: torch.nn.Module, examples: Sequence[Example], recipe: Distillation) -> HeldOut:
    """How well a model gives these replies."""
    if not examples:
        return HeldOut(0, None, None)
    was = model.training
    model.eval()
    device = next(model.parameters()).device
    loss = tokens = exact = 0.0
    for batch in Batches([example.tokens for example in examples], recipe.batch_tokens, recipe.seed):
        rows = {name: value.to(device) for name, value in collated([examples[i] for i in batch]).items()}
        logits, labels = replied(model, rows)
        counted = labels != NO_LABEL
        loss += float(
            torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL, reduction="sum"
            )
        )
        tokens += int(counted.sum())
        exact += int(((logits.argmax(-1) == labels) | ~counted).all(dim=1).sum())
    model.train(was)
    return HeldOut(len(examples), loss / tokens, exact / len(examples))


def _prepared(name: str, options: dict[str, Any], recipe: Distillation) -> torch.nn.Module:
    """The model to train: all of it in single precision, or a low-rank difference to it as it is."""
    kept = recipe.lora is not None and torch.cuda.is_available()
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto" if kept else torch.float32, **options)
    if recipe.lora is None:
        whole: torch.nn.Module = model
        return whole
    if recipe.gradient_checkpointing:
        model.enable_input_require_grads()
    lora = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=recipe.lora.rank,
        lora_alpha=recipe.lora.alpha,  # type: ignore[arg-type]  # only ever divided by the rank
        lora_dropout=0.0,
        target_modules="all-linear",
    )
    return get_peft_model(model, lora)


def _judge_file(folder: Folder, recipe: Distillation, dtype: str, out: Path) -> Path:
    """The student's file, with the trained model in it and its prompts beside it."""
    student = folder.card["student"]
    for prompt in folder.prompts:
        (out / PROMPTS).mkdir(exist_ok=True)
        shutil.copyfile(prompt, out / PROMPTS / prompt.name)
    how = student["model"] if student["model"]["temperature"] else {"thinking": student["model"]["thinking"]}
    settings = {
        **{name: value for name, value in student["settings"].items() if value is not None},
        "model": {
            "engine": "vllm_offline",
            "model": "./model",
            "dtype": dtype,
            "max_tokens": recipe.max_tokens,
            **{name: value for name, value in how.items() if value is not None},
        },
    }
    teacher = folder.card["teacher"]
    text = (
        f"# Taught by {teacher['name']} ({teacher['version']}); training.json has the rest.\n"
        "# Its version is a hash of the model's files: another training makes another judge.\n"
    )
    file = out / reading.NAMES[folder.role]
    file.write_text(text + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return file


def _record(
    trained: Trained, folders: Sequence[Folder], base: _models.ModelConfig, recipe: Distillation, out: Path
) -> None:
    """What was trained on what, and what came of it."""
    record = {
        "base": base.model_dump(mode="json"),
        "recipe": recipe.model_dump(mode="json"),
        "data": [
            {"teacher": f.card["teacher"], "command": f.card["command"], "files": f.card["files"]} for f in folders
        ],
        "left_out": trained.left_out,
        "before": asdict(trained.before),
        "after": asdict(trained.after),
    }
    (out / "training.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _decides(recipe: Distillation, examples: Sequence[Example], base: _models.ModelConfig) -> str:
    """Hash of the recipe, the examples and the weights to start from."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.prompt, example.reply]).encode())
    settings = recipe.model_dump(mode="json", exclude={"save_every"})
    return keys.version([settings, _models.identity(base, WHAT), digest.hexdigest()])
