"""The shipped configs of language models: they load, are pinned and licensed, and fit the card that they name.

Nobody's weights are needed. Memory is arithmetic on the models' published shapes: what a config's comment says of it
is held against that, and so is the card.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.root import ROOT

from tasks import judges
from tasks.core.errors import ConfigError
from tasks.core.types import Judge
from tasks.engines.generator import TOP
from tasks.judges import generate, rater_model
from tasks.judges.generate import Writer
from tasks.judges.rater_model import RaterModel

CONFIGS = ROOT / "configs" / "judges"
# Where they are not judges: what whoever asks them has for them.
GIVES = {"relevance": ("passages", "question", "answer"), "facts": ("question", "answer", "sentence")}
GIVES |= {"questions": ("answer",), "chunk_relevance": GIVES["relevance"][:2], "answerability": GIVES["relevance"][:2]}
READ = {path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CONFIGS.glob("*.yaml"))}
MODELS = [path for path, config in READ.items() if config["kind"] in {"llm", "rater_model", "generate"}]
JUDGES = [path for path in MODELS if READ[path]["kind"] == "llm"]
CARDS = {"24gb": 24e9, "h100": 80e9, "h200": 141e9}  # bytes; decimal, so that what fits here fits there
OVERHEAD = 2e9  # bytes that vLLM needs besides weights and cache: activations, graphs, the libraries themselves
TOGETHER = 2  # longest requests that must find room at once; typical ones are several times shorter
FP16, FP8, AWQ = 16.0, 8.0, 4 + (16 + 4) / 128  # bits of a weight; AWQ: a scale and a zero for each group of 128


@dataclass(frozen=True)
class Shape:
    """A decoder as its authors publish it. Norms and biases are left out: less than a thousandth of the whole."""

    hidden: int
    layers: int
    inner: int  # of one expert, where there are several
    heads: int
    kv_heads: int
    vocabulary: int
    head: int = 128
    experts: int = 1
    tied: bool = False  # the output shares the embedding
    other: float = 0.0  # parameters besides the decoder

    @property
    def layer_weights(self) -> int:
        attention = 2 * self.hidden * self.head * (self.heads + self.kv_heads)
        return self.layers * (attention + self.experts * 3 * self.hidden * self.inner)

    @property
    def tables(self) -> float:
        return self.hidden * self.vocabulary * (1 if self.tied else 2) + self.other

    @property
    def parameters(self) -> float:
        return self.layer_weights + self.tables

    def weights(self, bits: float) -> float:
        """Bytes of the weights; the tables stay in 16 bits."""
        return self.layer_weights * bits / 8 + self.tables * 2

    @property
    def cached(self) -> int:
        """Bytes of cache for one token of a request: a key and a value of 16 bits per layer."""
        return self.layers * 2 * self.kv_heads * self.head * 2


QWEN3_8B = Shape(4096, 36, 12288, 32, 8, 151936)
SHAPES = {
    "Qwen/Qwen3-1.7B": (Shape(2048, 28, 6144, 16, 8, 151936, tied=True), FP16),
    "Qwen/Qwen3-8B": (QWEN3_8B, FP16),
    "Qwen/Qwen3-14B-AWQ": (Shape(5120, 40, 17408, 40, 8, 151936), AWQ),
    "Qwen/Qwen3-32B-FP8": (Shape(5120, 64, 25600, 64, 8, 151936), FP8),
    "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8": (Shape(2048, 48, 768, 32, 4, 151936, experts=128), FP8),
    "Qwen/Qwen2.5-72B-Instruct-AWQ": (Shape(8192, 80, 29568, 64, 8, 152064), AWQ),
    "meta-llama/Llama-3.1-8B-Instruct": (Shape(4096, 32, 14336, 32, 8, 128256), FP16),
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": (Shape(8192, 80, 28672, 64, 8, 128256), FP8),
    "mistralai/Mistral-Small-24B-Instruct-2501": (Shape(5120, 40, 32768, 32, 8, 131072), FP16),
    "microsoft/phi-4": (Shape(5120, 40, 17920, 40, 10, 100352), FP16),
    # Its layers remember less than this: most of them look back 1,024 tokens only. `other`: it also reads images.
    "google/gemma-3-12b-it": (Shape(3840, 48, 15360, 16, 8, 262208, head=256, tied=True, other=0.42e9), FP16),
}


def text(path: Path) -> str:
    """A config's text with its comments on one line, so that a phrase is found wherever the line breaks."""
    return re.sub(r"\n# ?", " ", path.read_text(encoding="utf-8"))


def load(path: Path, config: Mapping[str, Any]) -> Judge | RaterModel | Writer:
    """What a config describes, by its kind's own loader."""
    if config["kind"] == "llm":
        return judges.load(path)
    gives = GIVES[Path(config["prompt"]).parent.name]
    return rater_model.load(path, gives) if config["kind"] == "rater_model" else generate.load(path, gives)


def output(pattern: str, path: Path) -> float:
    found = re.findall(pattern, text(path))
    assert len(found) == 1, f"{path.name} says {pattern!r} {len(found)} times"
    return float(found[0].replace(",", ""))


def test_totals_are_those_that_are_published_of_files() -> None:
    """The arithmetic itself: bytes of the tensors in three public repositories, known to the byte."""
    for name, published in (
        ("Qwen/Qwen3-14B-AWQ", 9_992_683_140),  # the repository; tokenizer and all
        ("mistralai/Mistral-Small-24B-Instruct-2501", 47_144_848_000),
    ):
        shape, bits = SHAPES[name]
        assert shape.weights(bits) == pytest.approx(published, rel=0.003)
    assert SHAPES["Qwen/Qwen3-32B-FP8"][0].weights(FP16) == pytest.approx(65_540_298_478, rel=0.003)  # unquantized
    assert QWEN3_8B.layer_weights == 6_945_767_424  # of its 36 · 7 linear layers


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_loads_without_a_model_or_a_network(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version, which names every verdict, can be told before the weights are there."""

    def refused(*_: object) -> None:
        raise AssertionError("reaches for a network")

    monkeypatch.setattr("socket.socket.connect", refused)
    assert re.fullmatch(r"[0-9a-f]{16,64}", load(path, READ[path]).version)


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_pins_commits_and_names_the_licence(path: Path) -> None:
    model = READ[path]["model"]
    whole = text(path)
    assert re.fullmatch(r"[0-9a-f]{40}", model["revision"])
    assert re.search(rf"Weights: {re.escape(model['model'])}, .*(Apache-2\.0|MIT|License|Terms of Use)", whole)
    offered = re.findall(r"^#? *(model|revision): (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    for (what, name), (then, commit) in zip(offered[::2], offered[1::2], strict=True):
        assert (what, then) == ("model", "revision")
        assert re.fullmatch(r"[0-9a-f]{40}", commit), name
    assert len({commit for _, commit in offered}) == len(offered)  # no commit serves two repositories


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_is_refused_without_a_revision(path: Path, tmp_path: Path) -> None:
    config = READ[path]
    prompts = {key: str((CONFIGS / config[key]).resolve()) for key in ("prompt", "explained_prompt") if key in config}
    unpinned = {**config, **prompts, "model": {**config["model"], "revision": None}}
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump(unpinned), encoding="utf-8")
    with pytest.raises(ConfigError, match="without a revision"):
        load(tmp_path / "judge.yaml", config)


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_takes_the_likeliest_answer_and_spends_nothing_on_thoughts(path: Path) -> None:
    model = READ[path]["model"]
    assert model["temperature"] == 0
    # The models of Qwen3 think unless they are told not to, but for the one that was made without.
    thinks = "/Qwen3-" in model["model"] and "Instruct" not in model["model"]
    assert model.get("thinking") is (False if thinks else None)


def test_there_is_a_judge_for_every_card_one_for_a_cpu_and_one_behind_a_server() -> None:
    profiles = {path.stem.rsplit("-", 1)[1] for path in JUDGES}
    assert profiles == {*CARDS, "cpu", "server"}
    assert all(
        READ[p]["model"]["engine"] == ("openai_server" if p.stem.endswith("server") else "vllm_offline") for p in JUDGES
    )


@pytest.mark.parametrize("path", JUDGES, ids=lambda p: p.stem)
def test_says_what_it_takes_of_memory(path: Path) -> None:
    shape, bits = SHAPES[READ[path]["model"]["model"]]
    assert output(r"([\d.]+) billion parameters", path) == pytest.approx(shape.parameters / 1e9, abs=0.06)
    assert output(r"([\d.]+) GB of weights", path) == pytest.approx(shape.weights(bits) / 1e9, abs=0.06)
    assert output(r"([\d.]+) MB of cache", path) == pytest.approx(shape.cached / 1e6, abs=0.0006)


@pytest.mark.parametrize("path", [p for p in JUDGES if not p.stem.endswith("cpu")], ids=lambda p: p.stem)
def test_fits_the_card_that_it_names(path: Path) -> None:
    model = READ[path]["model"]
    shape, bits = SHAPES[model["model"]]
    server = path.stem.endswith("server")
    card = CARDS["h100" if server else path.stem.rsplit("-", 1)[1]]
    share = 0.9 if server else model["offline"]["gpu_memory_share"]  # below vLLM's own choice, 0.92
    needed = shape.weights(bits) + OVERHEAD + TOGETHER * model["max_tokens"] * shape.cached
    assert needed <= share * card
    assert f"{card / 1e9:.0f} GB" in text(path)


@pytest.mark.slow
def test_the_server_is_started_with_what_its_judge_says() -> None:
    """Nothing is asked of the server: a command that differs would put verdicts under a wrong version."""
    from vllm.entrypoints.launchers.cli_args import make_arg_parser  # noqa: PLC0415 - ten seconds
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

    (path,) = [p for p in JUDGES if p.stem.endswith("server")]
    model = READ[path]["model"]
    command = re.search(r"vllm serve (.*?--port \d+)", text(path).replace("\\", " "))
    assert command
    started = make_arg_parser(FlexibleArgumentParser()).parse_args(shlex.split(command[1]))
    assert (started.model_tag, started.revision) == (model["model"], model["revision"])
    assert (started.dtype, started.max_model_len) == (model["dtype"], model["max_tokens"])
    assert model["server"]["urls"] == [f"http://{started.host}:{started.port}/v1"]
    assert started.host == "127.0.0.1"  # nothing of a trace leaves the machine unless somebody says so
    assert started.max_logprobs >= TOP
    assert started.enable_prompt_tokens_details  # else nobody learns what its prefix cache spared
    assert started.structured_outputs_config.disable_any_whitespace


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_the_room_that_it_asks_for_is_within_what_the_model_reads(path: Path) -> None:
    published = output(r"([\d,]+) tokens\. The commit", path)
    assert READ[path]["model"]["max_tokens"] <= published
