"""The bundled entailment model, in a folder that transformers and vLLM can load. README.md there is its model card."""

from pathlib import Path


def get_model_path() -> str:
    """The folder that contains the weights."""
    return str(Path(__file__).parent)
