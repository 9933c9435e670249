"""Training a real, tiny model: what it is shown, what it minimises, and that a killed run ends as one never killed."""

import json
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.models import bert
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

from training import train
from training.authored import Pair
from training.recipe import Data, Lora, Recipe
from training.train import BUCKET, Batches

pytestmark = pytest.mark.slow
LENGTHS = st.lists(st.integers(1, 512), min_size=1, max_size=60)
ADAPTED = ("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense")


# The loss -------------------------------------------------------------------------------------------------------------


def test_the_loss_by_hand():
    # Odds of 1 : 2 : 5 are shares of 1/8, 2/8 and 5/8.
    logits = torch.log(torch.tensor([[1.0, 2.0, 5.0]]))
    expected = [math.log(8), math.log(4), math.log(8 / 5), -math.log(2 / 8 + 5 / 8)]
    for label, value in enumerate(expected):
        assert train.loss(logits, torch.tensor([label])).item() == pytest.approx(value, rel=1e-6)
    every = train.loss(logits.repeat(4, 1), torch.arange(4)).item()
    assert every == pytest.approx(sum(expected) / 4, rel=1e-6)


@settings(deadline=None)
@given(st.lists(st.floats(-30, 30, width=32), min_size=3, max_size=3))
def test_not_entailed_is_the_sum_of_the_two_other_shares(logits):
    shares = [math.exp(x) / sum(map(math.exp, logits)) for x in logits]
    found = train.loss(torch.tensor([logits]), torch.tensor([train.NOT_ENTAILMENT])).item()
    # Float32 knows 1 to 6e-8, and logits of up to 30 to 2e-6.
    assert found == pytest.approx(-math.log(shares[1] + shares[2]), rel=1e-5, abs=1e-5)


def test_the_loss_of_half_precision_is_computed_in_full():
    logits = torch.tensor([[12.0, -7.0, 3.0]])
    labels = torch.tensor([2])
    assert train.loss(logits.bfloat16(), labels) == train.loss(logits, labels)
    # A lost cause in 16 bits (e^-30 is 9e-14, below the smallest number of half precision) keeps its gradient.
    far = torch.tensor([[30.0, 0.0, 0.0]], dtype=torch.float16, requires_grad=True)
    train.loss(far, torch.tensor([1])).backward()
    assert far.grad[0].tolist() == pytest.approx([1, -1, 0], abs=1e-3)


def test_the_ranking_loss_by_hand():
    # Odds of 1 : 1 and of 3 : 1: the wrong claim's are lower by log 3, and ln(1 + 1/3) is what is left to lose.
    logits = torch.log(torch.tensor([[3.0, 0.5, 0.5], [1.0, 0.5, 0.5], [9.0, 1.0, 1.0]]))
    assert train.ranking(logits, torch.tensor([-1, 0, -1])).item() == pytest.approx(math.log(4 / 3), rel=1e-6)
    assert train.ranking(logits, torch.tensor([1, -1, -1])).item() == pytest.approx(math.log(4), rel=1e-6)
    assert train.ranking(logits, torch.tensor([-1, -1, -1])).item() == 0


# Batches --------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(LENGTHS, st.integers(512, 5000), st.integers(0, 99), st.integers(0, 5))
def test_batches_hold_every_pair_once_and_keep_to_the_budget(lengths, budget, seed, epoch):
    batches = Batches(lengths, budget, seed)
    batches.set_epoch(epoch)
    found = list(batches)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(-(-lengths[i] // BUCKET) * BUCKET for i in batch)
        assert 0 < len(batch) * longest <= budget


@settings(deadline=None)
@given(LENGTHS, st.integers(512, 5000), st.integers(0, 99), st.integers(0, 5))
def test_the_same_seed_and_epoch_give_the_same_order_and_every_epoch_as_many_batches(lengths, budget, seed, epoch):
    first, again = Batches(lengths, budget, seed), Batches(lengths, budget, seed)
    count = len(first)
    first.set_epoch(epoch)
    again.set_epoch(epoch)
    assert list(first) == list(again)
    assert len(list(first)) == len(first) == count


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    lengths = [16 + i % 40 for i in range(200)]

    def order(seed, epoch):
        batches = Batches(lengths, 512, seed)
        batches.set_epoch(epoch)
        return list(batches)

    orders = [order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(a != b for i, a in enumerate(orders) for b in orders[:i])
    # Not only the order of the batches: which pairs share one differs too.
    assert {frozenset(b) for b in orders[0]} != {frozenset(b) for b in orders[1]}


@settings(deadline=None)
@given(LENGTHS, st.integers(512, 5000), st.integers(0, 5), st.data())
def test_twins_share_a_batch_that_can_hold_both(lengths, budget, epoch, data):
    names = [data.draw(st.sampled_from(["", f"pair {i // 2}"])) for i in range(len(lengths))]
    batches = Batches(lengths, budget, 0, names)
    count = len(batches)
    batches.set_epoch(epoch)
    found = list(batches)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    assert len(found) == count
    of = {i: n for n, batch in enumerate(found) for i in batch}
    for i, name in enumerate(names[:-1]):
        if name and name == names[i + 1] and 2 * max(-(-lengths[j] // BUCKET) * BUCKET for j in (i, i + 1)) <= budget:
            assert of[i] == of[i + 1]


def test_batches_are_of_like_length():
    # Of 100 short and 100 long pairs only the batch at the border can hold both.
    batches = list(Batches([10] * 100 + [200] * 100, 1024, 0))
    assert sum({i < 100 for i in batch} == {True, False} for batch in batches) <= 1


# Whole runs -----------------------------------------------------------------------------------------------------------

PAIRS = [
    *bert.pairs(),
    # Too long together, and the claim about as long as the premise: the premise alone is cut.
    Pair("the red boat " * 12, "the old white house and one lamp " * 5, "neutral", "made", "planted", "0" * 32),
]
# About 60 pairs of 16 to 64 tokens in batches of 512: five or six steps an epoch, so a checkpoint every four steps
# lies in the middle of one.
RECIPE = Recipe(
    data=Data(), max_tokens=64, batch_tokens=512, epochs=3, learning_rate=3e-3, dropout=0.1, save_every=4, warmup=0.1
)
LORA = RECIPE.model_copy(update={"lora": Lora(rank=2, alpha=4), "epochs": 2})


class KilledError(Exception):
    """Stands in for whatever ends a run from outside."""


def recorded(seen, dies_at=math.inf):
    """The trainer that is used, which notes what it is shown and may die before a step."""

    class Recorded(train._Trainer):
        def training_step(self, *args, **kwargs):
            if self.state.global_step >= dies_at:
                raise KilledError
            return super().training_step(*args, **kwargs)

        def compute_loss(self, model, inputs, **kwargs):
            seen.append(dict(inputs))
            return super().compute_loss(model, inputs, **kwargs)

    return Recorded


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return bert.base(tmp_path_factory.mktemp("base"))


def trained(recipe, base, out, seen=None, dies_at=math.inf):
    return train.run(recipe, PAIRS, str(base), out, recorded([] if seen is None else seen, dies_at))


@pytest.fixture(scope="module")
def whole(base, tmp_path_factory):
    """A run that nobody disturbs: its model, and all that it was shown."""
    seen = []
    return trained(RECIPE, base, tmp_path_factory.mktemp("whole"), seen), seen


@pytest.fixture(scope="module")
def adapted(base, tmp_path_factory):
    return trained(LORA, base, tmp_path_factory.mktemp("adapted"))


def same(one, other):
    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_wrong_twin_is_shown_with_the_row_of_the_right_one(base, tmp_path):
    twins = [
        Pair("the red boat is new", f"the {word} boat", label, "made", "whole", "0" * 32, twin=f"{n}")
        for n, words in enumerate((("red", "old"), ("new", "white")))
        for word, label in zip(words, ("entailment", "contradiction"), strict=True)
    ]
    seen = []
    recipe = RECIPE.model_copy(update={"ranking": 1, "steps": 1})
    train.run(recipe, [*twins, *bert.pairs()[:5]], base, tmp_path, recorded(seen))
    (shown,) = seen
    partners, labels = shown["partners"].tolist(), shown["labels"].tolist()
    assert sorted(labels[row] for row, partner in enumerate(partners) if partner >= 0) == [2, 2]
    for row, partner in enumerate(partners):
        if partner >= 0:
            assert labels[partner] == 0
            words = {frozenset(shown["input_ids"][i].tolist()) for i in (row, partner)}
            assert len(words) == 2  # another claim beside the same premise


def test_the_model_is_shown_every_pair_once_an_epoch(whole):
    _, seen = whole
    rows = [
        tuple(ids[mask > 0].tolist())
        for b in seen
        for ids, mask in zip(b["input_ids"], b["attention_mask"], strict=True)
    ]
    counts = Counter(rows)
    assert len(rows) == 3 * len(PAIRS)
    assert {count % 3 for count in counts.values()} == {0}


def test_what_the_model_is_shown_of_a_pair(whole, base):
    _, seen = whole
    tokenizer = AutoTokenizer.from_pretrained(base)
    sep, names = tokenizer.sep_token_id, (*train.LABELS, "not_entailment")
    expected = {(p.premise, p.hypothesis): names.index(p.label) for p in PAIRS}
    reported = {
        (
            tokenizer.decode(tokenizer.encode(premise, add_special_tokens=False)[: 64 - 3 - len(claim)]),
            tokenizer.decode(claim),
        ): label
        for (premise, hypothesis), label in expected.items()
        for claim in [tokenizer.encode(hypothesis, add_special_tokens=False)]
    }
    found = {}
    for batch in seen:
        assert batch["input_ids"].shape[1] % BUCKET == 0
        assert batch["input_ids"].numel() <= RECIPE.batch_tokens
        assert not batch["token_type_ids"].any()
        assert not batch["input_ids"][batch["attention_mask"] == 0].any()
        for ids, mask, label in zip(batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True):
            row = ids[mask > 0].tolist()
            assert len(row) <= RECIPE.max_tokens
            assert (row[0], row[-1], row.count(sep)) == (tokenizer.cls_token_id, sep, 2)
            border = row.index(sep)
            # A long premise is cut at its end; the claim stays whole.
            found[tokenizer.decode(row[1:border]), tokenizer.decode(row[border + 1 : -1])] = label.item()
    assert found == reported


def test_training_learns(tmp_path):
    def mean(model):
        tokenizer = AutoTokenizer.from_pretrained(spread)
        names = (*train.LABELS, "not_entailment")
        texts = [p.premise for p in PAIRS], [p.hypothesis for p in PAIRS]
        limits = {"padding": True, "truncation": "only_first", "max_length": RECIPE.max_tokens}
        rows = tokenizer(*texts, **limits, return_token_type_ids=False, return_tensors="pt")
        with torch.inference_mode():
            return train.loss(model.eval()(**rows).logits, torch.tensor([names.index(p.label) for p in PAIRS])).item()

    # The words of the claims tell the labels, and the weights are far enough apart for words to make a difference. The
    # best guess without looking is worth about 0.8, and no training at all more than 1.
    spread = str(bert.base(tmp_path / "base", spread=0.3))
    eager = RECIPE.model_copy(update={"epochs": 12, "dropout": 0.0, "freeze_embeddings": False, "save_every": 1000})
    torch.manual_seed(0)
    assert mean(train.base_model(eager, spread)) > 0.8
    assert mean(AutoModelForSequenceClassification.from_pretrained(trained(eager, spread, tmp_path))) < 0.4


def test_the_finished_folder_is_a_plain_classifier_that_knows_its_labels(whole):
    model, info = AutoModelForSequenceClassification.from_pretrained(whole[0], output_loading_info=True)
    assert type(model) is BertForSequenceClassification
    assert not any(info[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.config.id2label == {0: "entailment", 1: "neutral", 2: "contradiction"}
    assert model.config.label2id == {"entailment": 0, "neutral": 1, "contradiction": 2}
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert AutoTokenizer.from_pretrained(whole[0]).tokenize("the red boat") == ["the", "red", "boat"]


@pytest.mark.parametrize("dies_at", [5, 9])
def test_a_killed_run_ends_with_the_weights_of_one_that_was_never_killed(whole, base, tmp_path, dies_at):
    with pytest.raises(KilledError):
        trained(RECIPE, base, tmp_path, dies_at=dies_at)
    assert not (tmp_path / "model").exists()
    seen = []
    finished = trained(RECIPE, base, tmp_path, seen)
    # It went on from its last checkpoint, and so did not simply begin anew.
    assert len(seen) == len(whole[1]) - dies_at // 4 * 4
    assert all(torch.equal(a["input_ids"], b["input_ids"]) for a, b in zip(seen, whole[1][-len(seen) :], strict=True))
    assert same(finished, whole[0])


def test_a_killed_run_of_a_low_rank_difference_does_so_too(adapted, base, tmp_path):
    with pytest.raises(KilledError):
        trained(LORA, base, tmp_path, dies_at=6)
    seen = []
    finished = trained(LORA, base, tmp_path, seen)
    assert seen
    assert same(finished, adapted)


def test_a_finished_run_is_not_run_again(whole, base):
    seen = []
    before = (whole[0] / "model.safetensors").read_bytes()
    trained(RECIPE, base, whole[0].parent, seen)
    assert not seen
    assert (whole[0] / "model.safetensors").read_bytes() == before


def test_the_seed_alone_decides_not_what_was_drawn_before(whole, base, tmp_path):
    models = []
    for seed, before in ((1, 5), (1, 6), (2, 6)):
        torch.manual_seed(before)
        folder = tmp_path / f"{seed}-{before}"
        folder.mkdir()
        models.append(trained(RECIPE.model_copy(update={"seed": seed, "epochs": 1}), base, folder))
    assert same(models[0], models[1])
    assert not same(models[1], models[2])


def test_frozen_embeddings_stay_as_the_base_has_them_and_all_else_moves(whole, base):
    origin, found = load_file(base / "model.safetensors"), load_file(whole[0] / "model.safetensors")
    for name, tensor in origin.items():
        assert torch.equal(found[f"bert.{name}"], tensor) == name.startswith("embeddings."), name


def test_layers_from_the_first_on_are_kept(base):
    model = train.base_model(RECIPE.model_copy(update={"layers": 1, "freeze_embeddings": False}), str(base))
    assert model.config.num_hidden_layers == len(model.bert.encoder.layer) == 1
    origin = load_file(base / "model.safetensors")
    assert torch.equal(model.bert.encoder.layer[0].output.dense.weight, origin["encoder.layer.0.output.dense.weight"])
    assert all(p.requires_grad for p in model.parameters())


def test_the_head_learns_faster_and_only_matrices_decay(base, tmp_path):
    arguments = train.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    model = train.base_model(RECIPE, str(base))
    trainer = train._Trainer(model=model, args=arguments)
    trainer.recipe, trainer.lengths = RECIPE, []
    groups = trainer.create_optimizer().param_groups
    where = {id(p): group for group in groups for p in group["params"]}
    assert len(where) == sum(p.requires_grad for p in model.parameters())
    for name, parameter in model.named_parameters():
        if not name.startswith("bert.embeddings"):
            group = where[id(parameter)]
            assert group["lr"] == pytest.approx(RECIPE.learning_rate * (2 if name.startswith("classifier") else 1))
            assert group["weight_decay"] == (
                RECIPE.weight_decay if name.endswith("weight") and "LayerNorm" not in name else 0
            )


# The low-rank difference ----------------------------------------------------------------------------------------------


def test_a_low_rank_difference_is_learned_in_every_matrix_of_every_layer(base):
    model = train.base_model(LORA, str(base))
    learned = {n for n, p in model.named_parameters() if p.requires_grad}
    lora = {n.removeprefix("base_model.model.bert.encoder.").split(".lora_")[0] for n in learned if ".lora_" in n}
    places = ("attention.self.query", "attention.self.key", "attention.self.value", *ADAPTED[3:])
    assert lora == {f"layer.{i}.{place}" for i in range(bert.LAYERS) for place in places}
    assert {p.shape[0] if ".lora_A." in n else p.shape[1] for n, p in model.named_parameters() if ".lora_" in n} == {2}
    # What the base does not have, or has trained for something else, is learned whole.
    whole = {n.split(".modules_to_save.")[0].removeprefix("base_model.model.") for n in learned if ".lora_" not in n}
    assert whole == {"classifier", "bert.pooler"}


def test_a_low_rank_run_gives_a_plain_classifier(adapted):
    model, info = AutoModelForSequenceClassification.from_pretrained(adapted, output_loading_info=True)
    assert type(model) is BertForSequenceClassification
    assert not any(info[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not list(adapted.glob("adapter*"))
    assert "lora" not in json.dumps(json.loads((adapted / "config.json").read_text())).casefold()
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_a_low_rank_run_changes_matrices_by_that_rank_and_head_and_pooler_freely(adapted, base):
    origin, found = load_file(base / "model.safetensors"), load_file(adapted / "model.safetensors")
    for name, tensor in origin.items():
        difference = found[f"bert.{name}"] - tensor
        if name.startswith("pooler."):
            assert difference.any(), name
        elif name.endswith(tuple(f"{part}.weight" for part in ADAPTED)):
            sizes = torch.linalg.svdvals(difference)
            # Merging rounds weights of up to 0.1 by 2^-25 of it: at most 2e-7 over 32 times 64 of them.
            assert sizes[1] > 1e-5, name
            assert sizes[2] < 1e-6, name
        else:
            assert not difference.any(), name


def test_other_pairs_or_another_recipe_begin_anew(base, tmp_path):
    trained(RECIPE, base, tmp_path)
    for recipe, pairs in ((RECIPE.model_copy(update={"learning_rate": 1e-3}), PAIRS), (RECIPE, PAIRS[1:])):
        model = train.run(recipe, pairs, base, tmp_path)
        assert same(model, train.run(recipe, pairs, base, tmp_path / "anew"))


def test_a_checkpoint_that_was_cut_off_while_it_was_written_is_passed_over(whole, base, tmp_path):
    with pytest.raises(KilledError):
        trained(RECIPE, base, tmp_path, dies_at=9)
    (newest,) = tmp_path.glob("checkpoints-*/checkpoint-8")
    torn = newest.with_name("checkpoint-9")
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"half of")
    assert same(trained(RECIPE, base, tmp_path), whole[0])
