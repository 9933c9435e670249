"""Writers: a list of texts or a failure for each input; the prompt asks for one bounded list."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.root import ROOT
from kit.rule_generator import MODEL, Scripted

from tasks import judges
from tasks.core.config import validate
from tasks.core.errors import ConfigError, EngineError
from tasks.core.types import OUTAGE
from tasks.engines.generator import Generated, Reply
from tasks.judges import generate
from tasks.judges.generate import Config, Writer, Written

PROMPTS = ROOT / "configs" / "prompts"
FACTS = ("question", "answer", "sentence")
INPUT = {"question": "How hot is tea?", "answer": "It is hot. Ice is not.", "sentence": "It is hot."}


def writer(rule: Any, prompt: str = "facts", gives: tuple[str, ...] = FACTS, **settings: Any) -> Writer:
    config = validate(Config, {"kind": "generate", "model": MODEL, "prompt": f"{prompt}/v1.md", **settings}, "test")
    return Writer(config, rule if isinstance(rule, Scripted) else Scripted(rule), str(PROMPTS / "w.yaml"), gives)


def facts(*texts: object) -> str:
    return json.dumps({"facts": texts})


def test_texts_come_stripped_in_order_blank_ones_left_out() -> None:
    (found,) = writer(lambda _: facts(" Tea is hot. ", "", "  ", "Ice is cold.")).write([INPUT])
    assert found == Written(("Tea is hot.", "Ice is cold."), None, 10, 4, 3)


def test_what_was_fenced_comes_back_as_it_was() -> None:
    """The model sees markup in which nothing can be a tag, and copies it."""
    model = Scripted(lambda p: facts(p.user.rpartition("<sentence>\n")[2].partition("\n")[0]))
    (found,) = writer(model).write([{**INPUT, "sentence": "Use </b> or [INST]."}])
    assert "Use </b>" not in model.asked[0].user
    assert found.texts == ("Use </b> or [INST].",)


def test_a_control_character_that_is_not_escaped_is_a_blank() -> None:
    """xgrammar, with which vLLM holds a model to a schema, lets it write one."""
    (found,) = writer(lambda _: '{"facts":\t["Tea\tis\x00hot.\n"]}').write([INPUT])
    assert (found.texts, found.failure) == (("Tea is hot.",), None)


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ("Tea is hot.", "unparsable"), ("{}", "unparsable"), ("[]", "unparsable"), ('{"facts":"a"}', "unparsable"),
        (facts("a", 1), "unparsable"), ('{"facts":["a"],"more":1}', "unparsable"), (facts("a")[:-2], "unparsable"),
        (facts(*"abcdefghi"), "unparsable"),  # nine of at most eight
        (Reply(facts("a"), "length"), "truncated"), ("", "empty"),
        (Generated(failure="too_long"), "too_long"), (Generated(failure=OUTAGE), OUTAGE),
    ],
)  # fmt: skip
def test_what_is_no_list_is_a_failure(reply: Any, failure: str) -> None:
    model = lambda p: reply if "It is hot." in p.user.rpartition("<sentence>")[2] else facts("b")  # noqa: E731
    found = writer(model).write([INPUT, {**INPUT, "sentence": "Ice is not."}])
    assert [(w.texts, w.failure) for w in found] == [((), failure), (("b",), None)]
    assert found[0].tokens_in == 10


@given(st.text() | st.lists(st.text() | st.integers(), max_size=10).map(lambda x: facts(*x)))
def test_whatever_the_model_says_there_are_texts_or_a_failure(reply: str) -> None:
    (found,) = writer(lambda _: reply).write([INPUT])
    assert not (found.texts and found.failure)
    assert len(found.texts) <= 8
    assert all(text and text == text.strip() for text in found.texts)


def test_no_input_asks_nobody_and_a_model_that_is_down_is_an_error() -> None:
    model = Scripted(lambda _: facts("a"), up_for=0)
    assert writer(model).write([]) == []
    with pytest.raises(EngineError):
        writer(model).write([INPUT])


def test_the_longest_list_is_the_schemas() -> None:
    model = Scripted(lambda _: facts("a"))
    writer(model, most=3).write([INPUT, INPUT])
    schema = model.asked[0].schema
    assert schema["properties"]["facts"]["maxItems"] == 3  # type: ignore[index]
    assert model.asked[1].schema is schema  # engines compile it once


def test_facts_are_asked_for_with_what_sentences_share_first() -> None:
    model = Scripted(lambda _: facts("a"))
    writer(model).write([INPUT, {**INPUT, "sentence": "Ice is not."}])
    first, second = (p.user for p in model.asked)
    shared = "<question>\nHow hot is tea?\n</question>\n\n<answer>\nIt is hot. Ice is not.\n</answer>\n\n<sentence>\n"
    assert first == f"{shared}It is hot.\n</sentence>"
    assert second == f"{shared}Ice is not.\n</sentence>"


def test_questions_are_written_from_the_answer_alone() -> None:
    """docs/methods.md#scores-of-one-trace: n = 3, and the real question must not be seen."""
    model = Scripted(lambda _: json.dumps({"questions": ["A?", "B?", "C?"]}))
    (found,) = writer(model, "questions", ("answer",), most=3).write([INPUT])
    assert found.texts == ("A?", "B?", "C?")
    (asked,) = model.asked
    assert "It is hot. Ice is not." in asked.user
    assert "How hot is tea?" not in asked.user + asked.system
    assert asked.user.endswith("Write 3 questions.")
    schema = asked.schema["properties"]["questions"]  # type: ignore[index]
    assert (schema["minItems"], schema["maxItems"]) == (3, 3)


class TestConfig:
    def load(self, folder: Path, **settings: Any) -> Writer:
        path = folder / "w.yaml"
        prompt = str(PROMPTS / "facts" / "v1.md")
        path.write_text(yaml.safe_dump({"kind": "generate", "model": MODEL, "prompt": prompt, **settings}))
        return generate.load(path, FACTS)

    def test_what_changes_the_texts_changes_the_version(self, tmp_path: Path) -> None:
        versions = [self.load(tmp_path, **s).version for s in ({}, {"most": 4}, {"max_reply_tokens": 99})]
        assert len(set(versions)) == 3
        assert self.load(tmp_path).version == versions[0]
        assert self.load(tmp_path, model={**MODEL, "offline": {"max_sequences": 3}}).version == versions[0]

    def test_a_prompt_that_needs_what_is_not_there_is_refused(self, tmp_path: Path) -> None:
        self.load(tmp_path)
        with pytest.raises(ConfigError, match=r"v1\.md: inputs"):
            generate.load(tmp_path / "w.yaml", ("answer",))

    @pytest.mark.parametrize(
        "properties",
        [
            "a: {type: array, maxItems: 3, items: {type: string, maxLength: 9}}",  # `most` would mean nothing
            "a: {type: array, maxItems: $most, items: {type: integer}}",
            "a: {type: string, maxLength: 9}",
            "a: {type: array, maxItems: $most, items: {type: string, maxLength: 9}}\n    b: {type: boolean}",
        ],
    )
    def test_one_list_of_texts_is_asked_for(self, tmp_path: Path, properties: str) -> None:
        names = "[a, b]" if "b:" in properties else "[a]"
        (tmp_path / "p.md").write_text(
            "---\ninputs: [answer]\noutput:\n  type: object\n  properties:\n"
            f"    {properties}\n  required: {names}\n  additionalProperties: false\n---\n# System\nS\n# User\n{{{{ answer }}}}\n"
        )
        with pytest.raises(ConfigError, match=r"p\.md: output\.properties is not one list of texts"):
            self.load(tmp_path, prompt="p.md")

    def test_a_writer_is_no_judge_of_claims(self, tmp_path: Path) -> None:
        self.load(tmp_path)
        with pytest.raises(ConfigError, match=r"w\.yaml: kind is 'generate', which is no kind of judge"):
            judges.load(tmp_path / "w.yaml")
        (tmp_path / "w.yaml").write_text(yaml.safe_dump({"kind": "rater_model", "model": MODEL, "prompt": "p.md"}))
        with pytest.raises(ConfigError, match=r"w\.yaml: kind is 'rater_model'"):
            generate.load(tmp_path / "w.yaml", FACTS)
