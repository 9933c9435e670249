"""The shipped judge configs load, and each reads a model of its family as that model's authors do.

Nobody's weights are needed: a tiny random model of the same architecture, with the same tokenizer class and the same
names of classes, takes the place of the published one. What comes out is held against the use that the model's card
shows, written here with plain transformers.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
import yaml
from conftest import script
from kit.root import ROOT
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from tasks import judges
from tasks.core.errors import ConfigError
from tasks.core.keys import request_key
from tasks.core.types import Request
from tasks.engines.classifier import ClassifierConfig, open_classifier

CONFIGS = ROOT / "configs" / "judges"
KINDS = {path: yaml.safe_load(path.read_text(encoding="utf-8"))["kind"] for path in sorted(CONFIGS.glob("*.yaml"))}
SHIPPED = [
    path for path, kind in KINDS.items() if kind not in {"rater_model", "generate", "reranker"}
]  # these are no judges
NLI = [path for path, kind in KINDS.items() if kind == "nli"]
PUBLIC = [
    path
    for path in NLI
    if not yaml.safe_load(path.read_text(encoding="utf-8"))["classifier"]["model"].startswith("package:")
]
TEXTS = [
    "The dam was finished in 1936.",
    "Work on the dam took five years; it was finished in 1936, two years early.",
    "It is old.",
]
PAIRS = [(TEXTS[1], TEXTS[0]), (TEXTS[0], TEXTS[2]), (TEXTS[2], TEXTS[1])]
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.5,
}
LETTERS = [chr(c) for c in range(33, 127)]


def byte_bpe(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    return tokenizer


def roberta_tokenizer():
    trained = json.loads(byte_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).to_str())["model"]
    return transformers.RobertaTokenizer(vocab=trained["vocab"], merges=[tuple(m) for m in trained["merges"]])


def modernbert_tokenizer():
    trained = byte_bpe(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    trained.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "mask_token": "[MASK]",
    }
    return transformers.PreTrainedTokenizerFast(tokenizer_object=trained, **names)


def deberta_tokenizer():
    pieces = (
        [(name, 0.0) for name in ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "▁")]
        + [(c, -2.0) for c in LETTERS]
        + [("[MASK]", 0.0)]
    )
    return transformers.DebertaV2Tokenizer(vocab=pieces, unk_id=3)


def t5_tokenizer():
    pieces = [(name, 0.0) for name in ("<pad>", "</s>", "<unk>", "▁")] + [(c, -2.0) for c in LETTERS]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=0)


def model_of(name: str) -> tuple[transformers.PreTrainedModel, torch.nn.Linear]:
    """A random model with the published one's architecture and names of classes, and its last layer."""
    torch.manual_seed(7)
    nli = {0: "entailment", 1: "neutral", 2: "contradiction"}
    if name == "nli-modernbert":
        config = transformers.ModernBertConfig(
            **SMALL,
            vocab_size=320,
            max_position_embeddings=8192,
            classifier_pooling="mean",
            id2label=nli,
            pad_token_id=3,
            cls_token_id=1,
            sep_token_id=2,
            bos_token_id=1,
            eos_token_id=2,
        )
        model = transformers.ModernBertForSequenceClassification(config)
        return model, model.classifier
    if name == "nli-deberta":
        config = transformers.DebertaV2Config(
            **SMALL,
            vocab_size=110,
            max_position_embeddings=512,
            type_vocab_size=0,
            relative_attention=True,
            position_buckets=16,
            max_relative_positions=-1,
            pos_att_type=["p2c", "c2p"],
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            position_biased_input=False,
            pooler_hidden_size=16,
            id2label=nli,
        )
        model = transformers.DebertaV2ForSequenceClassification(config)
        return model, model.classifier
    names = {0: "0", 1: "1"} if name == "minicheck-roberta" else {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}
    config = transformers.RobertaConfig(
        **SMALL,
        vocab_size=320,
        max_position_embeddings=514,
        type_vocab_size=1,
        id2label=names,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    model = transformers.RobertaForSequenceClassification(config)
    return model, model.classifier.out_proj


TOKENIZERS: dict[str, Callable] = {
    "nli-modernbert": modernbert_tokenizer,
    "nli-deberta": deberta_tokenizer,
    "nli-roberta-mnli": roberta_tokenizer,
    "minicheck-roberta": roberta_tokenizer,
}


def decided(layer: torch.nn.Linear, shares: list[float]) -> None:
    """Make a last layer answer with these shares, whatever it reads."""
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.log(torch.tensor(shares)))


def published(name: str, folder: Path, shares: list[float] | None) -> Callable[[str, str], list[float]]:
    """Write a model as it is published; returns the use on its card: premise, hypothesis -> shares of the classes."""
    if name == "hhem":
        return hhem(folder, shares)
    tokenizer = TOKENIZERS[name]()
    model, last = model_of(name)
    if shares:
        decided(last, shares)
    tokenizer.save_pretrained(folder)
    model.eval().save_pretrained(folder)
    if name == "minicheck-roberta":  # published as a pickle only
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")

    def use(premise: str, hypothesis: str) -> list[float]:
        # minicheck/inference.py: one text, joined by the token that ends a sentence.
        texts = [premise + "</s>" + hypothesis] if name == "minicheck-roberta" else [premise, hypothesis]
        with torch.inference_mode():
            return torch.softmax(model(**tokenizer(*texts, return_tensors="pt")).logits[0].double(), -1).tolist()

    return use


def hhem(folder: Path, shares: list[float] | None) -> Callable[[str, str], list[float]]:
    """As Vectara's repository has it: the tensors of T5ForTokenClassification under "t5.", the embeddings once."""
    torch.manual_seed(7)
    foundation = folder / "flan"
    config = transformers.T5Config(
        vocab_size=110,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        feed_forward_proj="gated-gelu",
        num_labels=2,
    )
    config.save_pretrained(foundation)
    tokenizer = t5_tokenizer()
    tokenizer.save_pretrained(foundation)
    model = transformers.T5ForTokenClassification(config).eval()
    if shares:
        decided(model.classifier, shares)
    tensors = {
        f"t5.{k}": v.contiguous()
        for k, v in model.state_dict().items()
        if k != "transformer.encoder.embed_tokens.weight"
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    script("prepare_hhem").build(folder, foundation, folder / "model")

    def use(premise: str, hypothesis: str) -> list[float]:
        # modeling_hhem_v2.py: `prompt` filled in, then the logits of the first token.
        prompt = f"<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\nHypothesis: {hypothesis}"
        with torch.inference_mode():
            return torch.softmax(model(**tokenizer(prompt, return_tensors="pt")).logits[0, 0].double(), -1).tolist()

    return use


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The shipped config of that name with a tiny model in place of the published one, and the use on its card."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))

    def made(path: Path, shares: list[float] | None = None) -> tuple[Path, Callable[[str, str], list[float]]]:
        use = published(path.stem, tmp_path, shares)
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        folder = "./model" if path.stem == "hhem" else "./"
        config["classifier"] |= {"model": folder, "revision": None, "engine": "transformers_cpu"}  # vLLM needs a GPU
        (tmp_path / path.name).write_text(yaml.safe_dump(config), encoding="utf-8")
        return tmp_path / path.name, use

    return made


def requests() -> list[Request]:
    return [Request(request_key(p, h), p, h) for p, h in PAIRS]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_config_loads(path: Path) -> None:
    assert judges.load(path).engine


@pytest.mark.parametrize("path", [p for p in PUBLIC if p.stem != "hhem"], ids=lambda p: p.stem)
def test_shipped_config_pins_a_commit_and_is_refused_without_one(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    line = re.compile(r"^  revision: [0-9a-f]{40}$", re.MULTILINE)
    assert len(line.findall(text)) == 1
    for other in ("null", "main", "2a8f12d"):
        (tmp_path / "judge.yaml").write_text(line.sub(f"  revision: {other}", text), encoding="utf-8")
        with pytest.raises(ConfigError) as error:
            judges.load(tmp_path / "judge.yaml")
        if other == "null":
            name = yaml.safe_load(text)["classifier"]["model"]
            assert (
                f"classifier is a mapping. It names the hub model '{name}' without a revision; pin a commit hash"
                in str(error.value)
            )
        else:
            assert "classifier.revision is" in str(error.value)


@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.stem)
def test_every_public_model_has_a_tiny_one_here(path: Path) -> None:
    assert path.stem in {*TOKENIZERS, "hhem"}


# Shares of the classes in the order of the published model's numbers, and what they mean.
ORDERS = {
    "nli-modernbert": ([0.7, 0.2, 0.1], 0.7, 0.1),  # entailment, neutral, contradiction
    "nli-deberta": ([0.7, 0.2, 0.1], 0.7, 0.1),  # the same
    "nli-roberta-mnli": ([0.1, 0.2, 0.7], 0.7, 0.1),  # CONTRADICTION, NEUTRAL, ENTAILMENT
    "hhem": ([0.3, 0.7], 0.7, None),  # inconsistent, consistent
    "minicheck-roberta": ([0.3, 0.7], 0.7, None),  # unsupported, supported
}


@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.stem)
def test_classes_are_read_in_the_published_order(path: Path, tiny) -> None:
    shares, supported, contradicted = ORDERS[path.stem]
    config, _ = tiny(path, shares)
    for verdict in judges.load(config).judge(requests()):
        assert verdict.label == "supported"
        assert verdict.p_supported == pytest.approx(supported, abs=1e-3)
        assert verdict.p_contradicted == (None if contradicted is None else pytest.approx(contradicted, abs=1e-3))


@pytest.mark.parametrize("path", [p for p in PUBLIC if p.stem.startswith("nli-")], ids=lambda p: p.stem)
def test_contradiction_is_reported_from_neutral(path: Path, tiny) -> None:
    """The shares of the test above with entailment and contradiction exchanged."""
    config, _ = tiny(path, ORDERS[path.stem][0][::-1])
    assert [v.label for v in judges.load(config).judge(requests())] == ["contradicted"] * len(PAIRS)


@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.stem)
def test_pairs_are_read_as_on_the_models_card(path: Path, tiny) -> None:
    config, use = tiny(path)
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))["classifier"]
    found = open_classifier(ClassifierConfig.model_validate(settings).relative_to(config.parent)).classify(PAIRS)
    expected = [use(premise, hypothesis) for premise, hypothesis in PAIRS]
    assert found.probabilities == pytest.approx(torch.tensor(expected).numpy(), abs=1e-5)
    assert len({round(row[-1], 4) for row in expected}) == len(PAIRS)  # else the test could not tell


def test_a_folder_whose_scores_are_not_the_cards_is_noticed(tiny, tmp_path: Path) -> None:
    """A model that says 0.7 to everything is as far from the scores on the card as arithmetic says."""
    tiny(CONFIGS / "hhem.yaml", [0.3, 0.7])
    prepared = script("prepare_hhem")
    off = prepared.differences(tmp_path / "model")
    assert off == pytest.approx([abs(0.7 - score) for score in prepared.CARD.values()], abs=1e-4)
    assert max(off) > prepared.TOLERANCE
