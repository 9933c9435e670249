"""`leadline judges check`: ten claims, half of them supported; the exit code says whether the judge is fit."""

from pathlib import Path

import pytest
import yaml
from conftest import Command
from kit.chat_server import answer, serve
from kit.root import ROOT

from flows.judges.check import agrees, known_claims
from tasks.core.types import Verdict

JUDGES = ROOT / "configs" / "judges"


def test_half_of_the_known_claims_are_supported() -> None:
    # Otherwise the chance that the rule of fitness is stated by would not hold.
    labels = [label for label, _ in known_claims()]
    assert (len(labels), labels.count("supported")) == (10, 5)


@pytest.mark.parametrize(("label", "verdict", "agreed"), [
    ("supported", "supported", True), ("supported", "partially_supported", False), ("supported", "abstained", False),
    ("contradicted", "unsupported", True), ("unsupported", "supported", False), ("unsupported", "abstained", False),
])  # fmt: skip
def test_agreement(label: str, verdict: str, agreed: bool) -> None:
    assert agrees(label, Verdict("k", verdict)) == agreed  # type: ignore[arg-type]


def test_the_embedded_judge_is_fit(command: Command) -> None:
    ended = command("judges", "check", JUDGES / "nli.yaml")
    assert ended[0] == 0, ended
    assert "is fit for tonight" in ended[1]
    assert "parse rate 1.00" in ended[1]


def test_a_judge_that_always_says_supported_is_not_fit(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "yes.yaml"
    shares = {"supported": 1.0, "partially_supported": 0.0, "unsupported": 0.0, "contradicted": 0.0}
    file.write_text(yaml.safe_dump({"kind": "replay", "shares": shares}))
    ended = command("judges", "check", file)
    assert (ended[0], "agreement 5 of 10" in ended[1], "is not fit for tonight" in ended[2]) == (1, True, True)


def test_malformed_replies_are_not_fit(command: Command, tmp_path: Path) -> None:
    async def malformed(_server: object, body: dict) -> object:
        return answer(body, "{")

    with serve(malformed) as server:
        model: dict[str, object] = {"engine": "openai_server", "model": "x", "revision": "0" * 40, "max_tokens": 4096}
        model["server"] = {"urls": [server.url]}
        file = tmp_path / "llm.yaml"
        prompt = str(ROOT / "configs/prompts/entailment/v1.md")
        file.write_text(yaml.safe_dump({"kind": "llm", "prompt": prompt, "model": model}))
        ended = command("judges", "check", file)
    assert (ended[0], "parse rate 0.00" in ended[1]) == (1, True), ended


@pytest.mark.parametrize("text", [None, "kind: nly"])
def test_a_bad_file_is_wrong_usage(command: Command, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "bad.yaml"
    if text:
        file.write_text(text)
    ended = command("judges", "check", file)
    assert (ended[0], "bad.yaml" in ended[2]) == (2, True)
