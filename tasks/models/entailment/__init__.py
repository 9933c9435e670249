"""The embedded entailment model, a folder that transformers and vLLM load; README.md beside this file is its card."""

from pathlib import Path


def get_model_path() -> str:
    """The folder of the weights."""
    return str(Path(__file__).parent)
