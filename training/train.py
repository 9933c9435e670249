"""Fine-tunes the three-class cross-encoder of a recipe with Hugging Face's Trainer, on a CPU or a GPU alike.

Token types are zero throughout: the input is one run of token ids, so the same weights serve wherever a plain sequence
of ids can be sent. `not_entailment` pairs are trained as -log(p_neutral + p_contradiction). A killed run goes on from
its last checkpoint and ends with the weights of one that was never killed. Left out: choosing a checkpoint by its score
on anything that is measured on later.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed

from tasks.core import keys
from training.authored import Pair
from training.recipe import Recipe

LABELS = ("entailment", "neutral", "contradiction")
NOT_ENTAILMENT = len(LABELS)  # a label of pairs, never of the model
BUCKET = 16  # tokens: pairs are padded to a multiple of this


class Batches:
    """Batches of nearly equal padded size: pairs of like length, in an order drawn anew each epoch.

    Args:
        twins: Name of the minimal pair of each pair, or "": its members share a batch wherever it can hold both.
    """

    def __init__(self, lengths: Sequence[int], batch_tokens: int, seed: int, twins: Sequence[str] = ()) -> None:
        self.lengths, self.batch_tokens, self.seed, self.epoch = lengths, batch_tokens, seed, 0
        together: dict[str, list[int]] = {}
        for i, name in enumerate(twins or [""] * len(lengths)):
            together.setdefault(name or f"#{i}", []).append(i)
        padded = [-(-n // BUCKET) * BUCKET for n in lengths]
        self.units: list[tuple[int, list[int]]] = []  # the longest member's padded length, and the members
        for members in together.values():
            longest = max(padded[i] for i in members)
            fits = len(members) * longest <= batch_tokens
            self.units += [(longest, members)] if fits else [(padded[i], [i]) for i in members]

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.seed, self.epoch])
        # How many batches there are does not change by epoch: units of one length and size stay in one run.
        order = sorted(
            rng.permutation(len(self.units)).tolist(), key=lambda i: (self.units[i][0], len(self.units[i][1]))
        )
        batches: list[list[int]] = [[]]
        for longest, members in (self.units[i] for i in order):
            # Sorted by length: the newest member is the longest.
            if (len(batches[-1]) + len(members)) * longest > self.batch_tokens and batches[-1]:
                batches.append([])
            batches[-1] += members
        yield from (batches[i] for i in rng.permutation(len(batches)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean negative log-likelihood; the fourth label is "neutral or contradiction"."""
    log_p = torch.log_softmax(logits.float(), dim=-1)
    either = torch.logsumexp(log_p[:, 1:], dim=-1, keepdim=True)
    return -torch.cat([log_p, either], dim=-1).gather(1, labels.unsqueeze(1)).mean()


def ranking(logits: torch.Tensor, partners: torch.Tensor) -> torch.Tensor:
    """Mean of log(1 + exp(odds - odds of the supported twin)), a logistic loss of order; 0 without twins.

    Args:
        partners: For a pair that is not entailed and whose twin is in the batch, the twin's row; else -1 (pairs,).
    """
    log_p = torch.log_softmax(logits.float(), dim=-1)
    odds = log_p[:, 0] - torch.logsumexp(log_p[:, 1:], dim=-1)
    wrong = partners >= 0
    if not wrong.any():
        return odds.sum() * 0
    return torch.nn.functional.softplus(odds[wrong] - odds[partners[wrong]]).mean()


class _Trainer(Trainer):  # type: ignore[misc]
    """The Trainer with our batches, our loss and a faster head."""

    recipe: Recipe
    lengths: Sequence[int]
    twins: Sequence[str]

    def get_train_dataloader(self) -> DataLoader[Any]:
        batches = Batches(self.lengths, self.recipe.batch_tokens, self.recipe.seed, self.twins)
        loader = DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)  # type: ignore[no-any-return]

    def compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, torch.Tensor], return_outputs: bool = False, **_: object
    ) -> torch.Tensor | tuple[torch.Tensor, Any]:
        labels, partners = inputs.pop("labels"), inputs.pop("partners")
        out = model(**inputs)
        value = loss(out.logits, labels)
        if self.recipe.ranking:
            value = value + self.recipe.ranking * ranking(out.logits, partners)
        return (value, out) if return_outputs else value

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        named = [(n, p) for n, p in (model or self.model).named_parameters() if p.requires_grad]
        groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
        for name, parameter in named:
            groups.setdefault(("classifier" in name, parameter.ndim > 1), []).append(parameter)
        r = self.recipe
        self.optimizer = torch.optim.AdamW(
            [
                {
                    "params": ps,
                    "lr": r.learning_rate * (r.head_rate if head else 1),
                    "weight_decay": r.weight_decay if matrix else 0.0,
                }
                for (head, matrix), ps in sorted(groups.items())
            ],
            betas=(0.9, 0.98),
            fused=True,
        )
        return self.optimizer


def base_model(recipe: Recipe, folder: str) -> torch.nn.Module:
    """The untrained classifier on the recipe's base."""
    options = {"hidden_dropout_prob": recipe.dropout, "attention_probs_dropout_prob": recipe.dropout}
    if recipe.layers is not None:
        options["num_hidden_layers"] = recipe.layers
    names = dict(enumerate(LABELS))
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=len(LABELS),
        id2label=names,
        label2id={n: i for i, n in names.items()},
        dtype=torch.float32,
        local_files_only=True,
        attn_implementation="eager",  # on a CPU the fused one takes 1.5 times as long for a step of short pairs
        **options,
    )
    if recipe.freeze_embeddings:
        model.base_model.embeddings.requires_grad_(requires_grad=False)
    if recipe.lora is None:
        whole: torch.nn.Module = model
        return whole
    lora = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=recipe.lora.rank,
        lora_alpha=recipe.lora.alpha,  # type: ignore[arg-type]  # only ever divided by the rank
        lora_dropout=0.0,
        target_modules=["query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"],
        modules_to_save=["classifier", "pooler"],
    )
    return get_peft_model(model, lora)


def run(recipe: Recipe, pairs: Sequence[Pair], base: str, out: Path, loop: type[_Trainer] = _Trainer) -> Path:
    """Trains, going on from the last checkpoint in `out`; the folder of the finished model.

    Args:
        base: Folder of the model to start from.
        out: Where the finished model goes, and checkpoints, in a folder named by a hash of what decides the weights:
            a changed recipe or other pairs begin anew.
        loop: The steps of training.
    """
    set_seed(recipe.seed)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    rows = tokenizer(
        [p.premise for p in pairs],
        [p.hypothesis for p in pairs],
        truncation="only_first",
        max_length=recipe.max_tokens,
        return_token_type_ids=False,
    )["input_ids"]
    names = (*LABELS, "not_entailment")
    twins = [p.twin if recipe.ranking else "" for p in pairs]
    data = [
        {"input_ids": ids, "labels": names.index(p.label), "twin": twin}
        for ids, p, twin in zip(rows, pairs, twins, strict=True)
    ]

    def collate(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        length = -(-max(len(b["input_ids"]) for b in batch) // BUCKET) * BUCKET
        ids = torch.zeros((len(batch), length), dtype=torch.long)
        mask = torch.zeros_like(ids)
        right = {b["twin"]: i for i, b in enumerate(batch) if b["twin"] and not b["labels"]}
        for i, b in enumerate(batch):
            ids[i, : len(b["input_ids"])] = torch.tensor(b["input_ids"])
            mask[i, : len(b["input_ids"])] = 1
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": torch.zeros_like(ids),
            "labels": torch.tensor([b["labels"] for b in batch]),
            "partners": torch.tensor([right.get(b["twin"], -1) if b["labels"] else -1 for b in batch]),
        }

    checkpoints = out / f"checkpoints-{_decides(recipe, pairs, base)}"
    lengths = [len(ids) for ids in rows]
    batches = Batches(lengths, recipe.batch_tokens, recipe.seed, twins)
    steps = recipe.steps or math.ceil(recipe.epochs * len(batches))
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=steps,
        lr_scheduler_type="linear",
        warmup_steps=int(recipe.warmup * steps),
        learning_rate=recipe.learning_rate,
        max_grad_norm=1.0,
        bf16=computes_bf16(),
        use_cpu=not torch.cuda.is_available(),
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
    trainer = loop(model=base_model(recipe, base), args=arguments, train_dataset=data, data_collator=collate)
    trainer.recipe, trainer.lengths, trainer.twins = recipe, lengths, twins
    trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    model = trainer.model.merge_and_unload() if recipe.lora is not None else trainer.model
    finished = out / "model"
    model.save_pretrained(finished)
    tokenizer.save_pretrained(finished)
    return finished


def _decides(recipe: Recipe, pairs: Sequence[Pair], base: str) -> str:
    """Hash of the recipe, the pairs and the weights to start from."""
    with (Path(base) / "model.safetensors").open("rb") as file:
        weights = hashlib.file_digest(file, "sha256").hexdigest()
    settings = recipe.model_dump(mode="json", exclude={"save_every", "base"})
    return keys.version([settings, weights, [[p.premise, p.hypothesis, p.label] for p in pairs]])


def last_checkpoint(folder: Path) -> str | None:
    """The newest whole checkpoint: its `trainer_state.json` is written last."""
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2]))) if whole else None


def computes_bf16() -> bool:
    """Whether this machine computes in bfloat16 without emulating it."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and "avx512_bf16" in Path("/proc/cpuinfo").read_text()
