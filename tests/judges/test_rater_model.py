"""RaterModels: grades are read or failed, never guessed; samples are summed up; prompts say which grades there are."""

import json
from collections.abc import Callable
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
from tasks.core.errors import ConfigError
from tasks.core.types import OUTAGE
from tasks.engines.generator import Generated, Reply
from tasks.judges import rater_model
from tasks.judges.rater_model import Config, RaterModel, combined

PROMPTS = ROOT / "configs" / "prompts"
GIVES = ("question", "answer", "passages")
ONE_TO_FIVE = {"type": "integer", "minimum": 1, "maximum": 5}
GRADES = {
    "relevancy": {**ONE_TO_FIVE, "type": ["integer", "null"]},
    "faithful": {"type": "boolean"},
    "useful": {"type": ["boolean", "null"]},
}
GOOD = {"relevancy": 4, "faithful": True, "useful": None}
INPUT = {"question": "Is tea hot?", "answer": "Yes.", "passages": ["Tea is hot.", "Ice is cold."]}


def prompt(path: Path, grades: dict[str, Any], text: str = "{{ question }}") -> Path:
    output = {"type": "object", "properties": grades, "required": list(grades), "additionalProperties": False}
    inputs = [name for name in (*GIVES, "weather") if "{{ " + name in text]
    head = yaml.safe_dump({"inputs": inputs, "output": output}, sort_keys=False)
    path.write_text(f"---\n{head}---\n# System\nGrade it.\n# User\n{text}\n")
    return path


@pytest.fixture(scope="module")
def grading(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RaterModel]:
    """A grader of `GRADES` whose model answers by a rule."""
    folder = tmp_path_factory.mktemp("grader")
    prompt(folder / "p.md", GRADES)

    def of(rule: Callable[..., Any], **settings: Any) -> RaterModel:
        if settings.get("samples", 1) > 1:
            settings["model"] = {**MODEL, "temperature": 0.7}
        config = validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": "p.md", **settings}, "test")
        return RaterModel(config, Scripted(rule), str(folder / "g.yaml"), GIVES)

    return of


def test_grades_are_read_and_null_is_not_applicable(grading: Callable[..., RaterModel]) -> None:
    (found,) = grading(lambda _: json.dumps(GOOD)).rate([INPUT])
    assert found.values == GOOD
    assert type(found.values["relevancy"]) is int
    assert found.values["faithful"] is True
    assert (found.failure, found.raw) == (None, None)
    assert (found.tokens_in, found.tokens_cached, found.tokens_out) == (10, 4, 3)


@pytest.mark.parametrize(
    "reply",
    [
        "four", "4", "[]", "null", json.dumps(GOOD)[:-1], json.dumps(GOOD) + " Good.",
        *(json.dumps(GOOD | {"relevancy": wrong}) for wrong in (0, 6, -1, 4.5, "4", True, [4])),
        *(json.dumps(GOOD | {"faithful": wrong}) for wrong in (None, 1, 0, "true")),
        json.dumps({k: v for k, v in GOOD.items() if k != "useful"}),
        json.dumps(GOOD | {"mood": 3}),
        '{"relevancy":NaN,"faithful":true,"useful":null}',
        "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_grade_is_unparsable_and_kept(grading: Callable[..., RaterModel], reply: str) -> None:
    (found,) = grading(lambda _: reply).rate([INPUT])
    assert (found.values, found.failure, found.raw) == ({}, "unparsable", reply)
    assert found.tokens_in == 10


@pytest.mark.parametrize(("reply", "failure"), [
    (Reply(json.dumps(GOOD), "length"), "truncated"),
    (Reply("", "stop"), "empty"),
    (Reply(" \n", "stop"), "empty"),
])  # fmt: skip
def test_a_reply_that_was_cut_off_or_is_blank_says_so(
    grading: Callable[..., RaterModel], reply: Reply, failure: str
) -> None:
    (found,) = grading(lambda _: reply).rate([INPUT])
    assert (found.values, found.failure, found.raw) == ({}, failure, reply.text)


@pytest.mark.parametrize("failure", ["too_long", "refused", OUTAGE])
def test_an_engines_failure_is_passed_on(grading: Callable[..., RaterModel], failure: str) -> None:
    good = {**INPUT, "question": "Good?"}
    model = lambda p: json.dumps(GOOD) if "Good?" in p.user else Generated(failure=failure)  # noqa: E731
    found = grading(model).rate([INPUT, good])
    assert [(f.values, f.failure, f.raw) for f in found] == [({}, failure, None), (GOOD, None, None)]


@given(
    reply=st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers(-2, 8),
            lambda x: st.dictionaries(st.sampled_from([*GRADES, "x"]), x),
        ).map(json.dumps),
    )
)
def test_whatever_the_model_says_there_are_grades_or_a_failure(grading: Callable[..., RaterModel], reply: str) -> None:
    (found,) = grading(lambda _: reply).rate([INPUT])
    if found.failure is not None:
        assert found.values == {}
    else:
        assert set(found.values) == set(GRADES)
        assert found.values["relevancy"] in {1, 2, 3, 4, 5, None}
        assert found.values["faithful"] in {True, False}


def test_nothing_to_grade_asks_nobody(grading: Callable[..., RaterModel]) -> None:
    asking = grading(lambda _: 1 / 0)
    assert asking.rate([]) == []


class TestSamples:
    @pytest.mark.parametrize(
        ("samples", "one"),
        [
            ([4], 4), ([2, 3, 4, 4], 3.25),
            ([True, True, False], True), ([True, False, False], False), ([True, False], False),
            ([None, 4, None], None), ([None, 4, 5], 4.5), ([None, 4], 4), ([None], None),
            ([None, None, None, True], None), ([None, True, True], True),
        ],
    )  # fmt: skip
    def test_mean_of_numbers_majority_of_yes_and_no_and_of_not_applicable(self, samples: list[Any], one: Any) -> None:
        assert combined(samples) == one
        assert type(combined(samples)) is type(one)

    @given(st.lists(st.none() | st.integers(1, 5), min_size=1))
    def test_a_mean_lies_among_its_samples(self, samples: list[int | None]) -> None:
        one = combined(samples)
        given_ = [s for s in samples if s is not None]
        assert one is None or min(given_) <= one <= max(given_)

    def test_those_that_can_be_read_count(self, grading: Callable[..., RaterModel]) -> None:
        replies = [json.dumps(GOOD), "?", json.dumps(GOOD | {"relevancy": 5, "faithful": False, "useful": False})]
        (found,) = grading(lambda _: replies, samples=3).rate([INPUT])
        # useful: one of two says that it does not apply, no majority; the other says no
        assert found.values == {"relevancy": 4.5, "faithful": False, "useful": False}
        assert (found.failure, found.tokens_out) == (None, 9)

    def test_none_that_can_be_read_is_a_failure(self, grading: Callable[..., RaterModel]) -> None:
        (found,) = grading(lambda _: ["?", "!"], samples=2).rate([INPUT])
        assert (found.values, found.failure, found.raw) == ({}, "unparsable", "?")

    def test_at_temperature_0_they_would_all_be_the_same(self) -> None:
        with pytest.raises(ConfigError, match="3 samples at temperature 0"):
            validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": "p.md", "samples": 3}, "g.yaml")


class TestPrompt:
    def load(self, folder: Path, **settings: Any) -> RaterModel:
        (folder / "g.yaml").write_text(
            yaml.safe_dump({"kind": "rater_model", "model": MODEL, "prompt": "p.md", **settings})
        )
        return rater_model.load(folder / "g.yaml", GIVES)

    def test_an_explanation_comes_first_and_is_no_grade(self, tmp_path: Path) -> None:
        why = {"type": "string", "maxLength": 99}
        prompt(tmp_path / "p.md", {"explanation": why, "relevancy": ONE_TO_FIVE})
        config = validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": "p.md"}, "test")
        model = Scripted(lambda _: '{"explanation":"It says <\\\\/b>.","relevancy":3}')
        (found,) = RaterModel(config, model, str(tmp_path / "g.yaml"), GIVES).rate([INPUT])
        assert (found.values, found.explanation) == ({"relevancy": 3}, "It says </b>.")  # as before it was fenced

        prompt(tmp_path / "p.md", {"relevancy": ONE_TO_FIVE, "explanation": why})
        with pytest.raises(ConfigError, match=r"p\.md: output\.properties\.explanation comes after a rating"):
            self.load(tmp_path)

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "number"}, {"type": "integer"}, {"type": "integer", "minimum": 0, "maximum": 5},
            {"type": "string", "maxLength": 9}, {"type": ["integer", "boolean"], "minimum": 1, "maximum": 5},
            {"enum": [1, 2]},
        ],
    )  # fmt: skip
    def test_a_grade_is_1_to_5_or_yes_or_no(self, tmp_path: Path, schema: dict[str, Any]) -> None:
        prompt(tmp_path / "p.md", {"fine": ONE_TO_FIVE, "odd": schema})
        with pytest.raises(ConfigError, match=r"p\.md: output\.properties\.odd is no rating\. A rating is an integer"):
            self.load(tmp_path)

    def test_an_input_that_nobody_gives_is_refused(self, tmp_path: Path) -> None:
        prompt(tmp_path / "p.md", GRADES, "{{ question }} {{ weather }}")
        with pytest.raises(ConfigError, match=r"p\.md: inputs .*weather"):
            self.load(tmp_path)

    def test_texts_are_fenced_and_lists_numbered(self, tmp_path: Path) -> None:
        prompt(tmp_path / "p.md", GRADES, "{{ passages }}\n{{ question }}")
        model = Scripted(lambda _: json.dumps(GOOD))
        config = validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": "p.md"}, "test")
        RaterModel(config, model, str(tmp_path / "g.yaml"), GIVES).rate([{**INPUT, "question": "</question>?"}])
        shown = model.asked[0].user
        assert shown.startswith(
            "<passage 1>\nTea is hot.\n</passage>\n<passage 2>\nIce is cold.\n</passage>\n<question>"
        )
        assert shown.count("</question>") == 1

    def test_what_changes_a_grade_changes_the_version(self, tmp_path: Path) -> None:
        def version(server: str = "http://a/v1", **settings: Any) -> str:
            model = {**MODEL, "engine": "openai_server", "server": {"urls": [server]}, "temperature": 0.5}
            return self.load(tmp_path, **{"model": model, **settings}).version

        prompt(tmp_path / "p.md", GRADES)
        first = version()
        assert version() == version("http://b/v1") == first
        assert len({first, version(samples=3), version(max_reply_tokens=99)}) == 3
        prompt(tmp_path / "p.md", GRADES, "{{ question }}!")
        assert version() != first


def test_a_rater_model_is_no_judge_of_claims(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(yaml.safe_dump({"kind": "rater_model", "model": MODEL, "prompt": "p.md"}))
    with pytest.raises(ConfigError, match=r"g\.yaml: kind is 'rater_model', which is no kind of judge\. Known kinds"):
        judges.load(tmp_path / "g.yaml")
    (tmp_path / "j.yaml").write_text("kind: replay\nmodel: {}\nprompt: p.md\n")
    with pytest.raises(ConfigError):
        rater_model.load(tmp_path / "j.yaml", GIVES)


@pytest.mark.parametrize(
    ("name", "reply", "values"),
    [
        ("chunk_relevance", '{"context_relevance":2}', {"context_relevance": 2}),
        ("answerability", '{"answerable":false}', {"answerable": False}),
    ],
)
def test_prompts_about_context_show_evidence_first_and_no_answer(name: str, reply: str, values: dict[str, Any]) -> None:
    model = Scripted(lambda _: reply)
    config = validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": f"{name}/v1.md"}, "test")
    (found,) = RaterModel(config, model, str(PROMPTS / "g.yaml"), ("passages", "question")).rate([INPUT])
    assert found.values == values
    shown = model.asked[0].user
    assert shown.startswith("<passage 1>\nTea is hot.")
    assert shown.endswith("<question>\nIs tea hot?\n</question>")
    assert "Yes." not in shown


class TestRelevance:
    """The prompt of docs/methods.md#scores-of-one-trace: evidence first, short, and one short reply."""

    def ask(self) -> Scripted:
        model = Scripted(lambda _: '{"context_relevance":2,"answer_relevance":5}')
        config = validate(Config, {"kind": "rater_model", "model": MODEL, "prompt": "relevance/v1.md"}, "test")
        (found,) = RaterModel(config, model, str(PROMPTS / "g.yaml"), GIVES).rate([INPUT])
        assert found.values == {"context_relevance": 2, "answer_relevance": 5}
        return model

    def test_evidence_comes_first_question_and_answer_last(self) -> None:
        shown = self.ask().asked[0].user
        assert shown.startswith("<passage 1>\nTea is hot.")
        assert shown.endswith("<question>\nIs tea hot?\n</question>\n\n<answer>\nYes.\n</answer>")

    def test_the_reply_is_short(self) -> None:
        assert len('{"context_relevance":2,"answer_relevance":5}') / 4 <= 12
