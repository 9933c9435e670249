"""Create the folder that configs/judges/hhem.yaml names: `python scripts/prepare_hhem.py [FOLDER]` (downloads 0.5 GB).

A config can't name Vectara's repository directly: its Python code does not load with transformers 5 (it never calls
`post_init`, without which the embeddings stay random), it has no tokenizer, and it downloads google/flan-t5-base
unpinned. So this script combines the published weights, the tokenizer and configuration of flan-t5-base, both at pinned
commits, and the few lines of code below. Finally it checks that the folder reproduces the scores on the model's card.
Left out: other versions.
"""

import json
import shutil
import sys
from pathlib import Path

from huggingface_hub import snapshot_download
from safetensors.torch import load_file, save_file

from tasks.core.config import load_yaml, validate
from tasks.engines.classifier import ClassifierConfig, open_classifier
from tasks.judges.nli import Config

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs" / "judges" / "hhem.yaml"
WEIGHTS = ("vectara/hallucination_evaluation_model", "8e4a2e6e96c708cc76c2344f7e4757df2515292c")
FOUNDATION = ("google/flan-t5-base", "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "spiece.model")
CODE = '''"""T5's encoder with a classifier on the first token, as HHEM-2.1-Open was trained."""

from transformers import T5ForTokenClassification


class FirstTokenT5(T5ForTokenClassification):
    """Logits (texts, classes)."""

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask)
        outputs.logits = outputs.logits[:, 0]
        return outputs
'''
CARD = {  # scores on the card, by premise and hypothesis
    ("The capital of France is Berlin.", "The capital of France is Paris."): 0.0111,
    ("I am in California", "I am in United States."): 0.6474,
    ("I am in United States", "I am in California."): 0.1290,
    ("A person on a horse jumps over a broken down airplane.", "A person is outdoors, on a horse."): 0.8969,
}
TOLERANCE = 0.001


def build(weights: Path, foundation: Path, out: Path) -> None:
    """Write the folder `out`.

    Args:
        weights: A folder with HHEM's model.safetensors: tensors of T5ForTokenClassification with the prefix "t5.".
        foundation: A folder with flan-t5-base's config.json and tokenizer.
    """
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name.removeprefix("t5."): tensor for name, tensor in load_file(weights / "model.safetensors").items()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    classes = {"inconsistent": 0, "consistent": 1}
    config = json.loads((foundation / "config.json").read_text(encoding="utf-8")) | {
        "architectures": ["FirstTokenT5"],
        "auto_map": {"AutoModelForSequenceClassification": "modeling_first_token.FirstTokenT5"},
        "id2label": {str(number): name for name, number in classes.items()},
        "label2id": classes,
    }
    (out / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    (out / "modeling_first_token.py").write_text(CODE, encoding="utf-8")
    for name in TOKENIZER_FILES:
        if (foundation / name).exists():
            shutil.copyfile(foundation / name, out / name)


def shipped() -> ClassifierConfig:
    """The shipped config of the judge."""
    return validate(Config, load_yaml(CONFIG), CONFIG).classifier


def differences(folder: Path) -> list[float]:
    """Absolute differences between the folder's scores, as computed by the shipped config, and the card's."""
    model = open_classifier(shipped().model_copy(update={"model": str(folder)}))
    scores = model.classify(list(CARD)).probabilities[:, model.labels.supported]
    return [abs(float(score) - published) for score, published in zip(scores, CARD.values(), strict=True)]


def main() -> None:
    """Download, write, check."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else shipped().model).expanduser().resolve()
    weights = snapshot_download(WEIGHTS[0], revision=WEIGHTS[1], allow_patterns=["model.safetensors"])
    foundation = snapshot_download(
        FOUNDATION[0], revision=FOUNDATION[1], allow_patterns=["config.json", *TOKENIZER_FILES]
    )
    build(Path(weights), Path(foundation), out)
    worst = max(differences(out))
    if worst > TOLERANCE:
        sys.exit(f"{out}: scores are up to {worst:.4f} off those on the model's card. Do not use this folder.")
    print(f"{out}: scores as on the model's card (off by {worst:.5f} at most).")


if __name__ == "__main__":
    main()
