"""Tiny classifiers with random weights and real tokenizers, of the families that entailment models come in."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "The customer canceled the order on March 14, 2024, because of pricing.",
    "Cancellations spiked in the first quarter; apples lower cholesterol.",
    "Eating apples can reduce blood pressure, and no one did that in 2023.",
]
PAIRS = [
    ("Order #4521 was canceled by the customer on March 14, 2024.", "The customer canceled in March."),
    ("Cancellations spiked in Q1.", "The customer canceled in March."),
    ("Apples.", "No."),
    ("Apples lower cholesterol. " * 12, "Eating apples can reduce blood pressure."),
    ("", "The customer canceled."),
    ("Äpfel 苹果", "x"),
]
NAMES = ("contradiction", "neutral", "entailment")
FAMILIES = ("bert", "roberta", "modernbert", "deberta")
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}


def make(folder: Path, family: str, names: tuple[str, ...] = NAMES, **sizes: int) -> str:
    """Write a classifier of a family and return its folder, as a config names it.

    BERT and DeBERTa get word pieces, RoBERTa and ModernBERT byte pairs. All read 128 tokens.
    """
    tokenizer = _word_pieces() if family in ("bert", "deberta") else _byte_pairs()
    tokenizer.save_pretrained(folder)
    labels = {
        "num_labels": len(names),
        "id2label": dict(enumerate(names)),
        "label2id": {n: i for i, n in enumerate(names)},
    }
    shared = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, **SIZES, **labels, **sizes}
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    if family == "bert":
        config = transformers.BertConfig(**shared, max_position_embeddings=128)
    elif family == "roberta":
        config = transformers.RobertaConfig(**shared, max_position_embeddings=130, type_vocab_size=1)
    elif family == "modernbert":
        ends = {"cls_token_id": 0, "bos_token_id": 0, "sep_token_id": 2, "eos_token_id": 2}
        config = transformers.ModernBertConfig(**shared, **ends, max_position_embeddings=128)
    else:
        relative = {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"]}
        config = transformers.DebertaV2Config(
            **shared, **relative, share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
            type_vocab_size=0, max_position_embeddings=128,
        )  # fmt: skip
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for weights in model.parameters():  # the usual small ones would give every pair the same answer
            if weights.dim() > 1:
                weights.normal_(std=2 * weights.shape[1] ** -0.5)
    model.save_pretrained(folder)
    return str(folder)


def _word_pieces() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=512,
    )  # fmt: skip


def _byte_pairs() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", model_max_length=512,
    )  # fmt: skip
