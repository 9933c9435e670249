"""A tiny random BERT with a tokenizer of its own, and pairs that it can learn: for tests of training and export."""

import random
from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from training.authored import Pair

COLORS = ("red", "blue", "green", "white")
THINGS = ("boat", "house", "door", "lamp", "coat", "wheel")
WORDS = (*COLORS, *THINGS, "the", "is", "not", "and", "old", "one", ".")
LAYERS, WIDTH = 2, 32


def base(folder: Path, spread: float = 0.02) -> Path:
    """A folder with random weights, as a published base model lies: without a classifier.

    Args:
        spread: Standard deviation of the weights; with a large one, texts are told apart without training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: i for i, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS))}
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=96,
        initializer_range=spread,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def pairs(count: int = 60, seed: int = 0) -> list[Pair]:
    """Short and long premises; all four labels, each told by a word."""
    rng = random.Random(seed)
    found = []
    for i in range(count):
        thing, color = rng.choice(THINGS), rng.choice(COLORS)
        filler = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 40)))
        label, claim = rng.choice(
            [
                ("entailment", f"the {thing} is {color} ."),
                ("neutral", f"the {thing} is old ."),
                ("contradiction", f"the {thing} is not {color} ."),
                ("not_entailment", f"one {thing} ."),
            ]
        )
        found.append(Pair(f"the {thing} is {color} . {filler}".strip(), claim, label, "made", "planted", f"{i:032x}"))
    return found
