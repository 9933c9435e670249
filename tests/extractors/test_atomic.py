"""The extractor `atomic`: facts of sentences, each pointing to its sentence (docs/methods.md#claims)."""

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

from tasks.core.config import validate
from tasks.core.errors import ConfigError, EngineError
from tasks.core.types import OUTAGE, Answer, Chunk, Extraction
from tasks.engines.generator import Generated, Prompt, Reply
from tasks.extractors import load, load_by_app
from tasks.extractors.atomic import AROUND, GIVES, Atomic, _around
from tasks.judges.generate import Config, Writer

PROMPTS = ROOT / "configs" / "prompts"
CHUNKS = (Chunk("a", "t"), Chunk("b", "t"))  # [1], [2]
SENTENCES = load({"kind": "sentences"}, "x")
ANSWER = "Tea is hot and it is wet [1]. It steams. Ice is cold [2][9]."


def sentence(prompt: Prompt) -> str:
    return prompt.user.partition("<sentence>\n")[2].removesuffix("\n</sentence>")


def facts(*texts: str) -> str:
    return json.dumps({"facts": texts})


def atomic(rule: Callable[[Prompt], Any] | Scripted) -> Atomic:
    config = validate(Config, {"kind": "generate", "model": MODEL, "prompt": "facts/v1.md"}, "test")
    model = rule if isinstance(rule, Scripted) else Scripted(rule)
    return Atomic(SENTENCES, Writer(config, model, str(PROMPTS / "w.yaml"), GIVES), "v")


def cut(rule: Callable[[Prompt], Any], text: str = ANSWER) -> Extraction:
    (found,) = atomic(rule).extract_many([Answer("How hot is tea?", text, CHUNKS)])
    return found


def shown(found: Extraction, text: str = ANSWER) -> list[tuple[str, str | None, str, str]]:
    return [
        (text[c.start : c.end], c.text, " ".join(c.cited_chunk_ids), " ".join(c.dangling)) for c in found.claims
    ]  # fmt: skip


def test_facts_have_the_span_and_the_references_of_their_sentence() -> None:
    replies = {
        "Tea is hot and it is wet": facts("Tea is hot.", "Tea is wet."),
        "It steams.": facts("Tea steams."),
        "Ice is cold": facts("Ice is cold."),
    }
    found = cut(lambda p: replies[sentence(p)])
    assert shown(found) == [
        ("Tea is hot and it is wet", "Tea is hot.", "a", ""),
        ("Tea is hot and it is wet", "Tea is wet.", "a", ""),
        ("It steams.", "Tea steams.", "b", "9"),  # what covers a segment covers each of its sentences
        ("Ice is cold", "Ice is cold.", "b", "9"),
    ]
    assert (found.unbroken, found.outage) == (0, False)
    assert (found.tokens_in, found.tokens_cached, found.tokens_out) == (30, 12, 9)


@pytest.mark.parametrize(
    "reply",
    ["?", "", facts(), facts(" ", "…"), Reply(facts("Half"), "length"), Generated(failure="too_long")],
    ids=["unparsable", "empty", "no facts", "no words", "truncated", "too long"],
)
def test_a_sentence_that_is_not_broken_stays_whole(reply: Any) -> None:
    found = cut(lambda p: reply if "Tea" in sentence(p) else facts("F."))
    assert shown(found)[0] == ("Tea is hot and it is wet", None, "a", "")
    assert [c.text for c in found.claims] == [None, "F.", "F."]
    assert (found.unbroken, found.outage) == (1, False)


def test_what_is_no_claim_stays_as_it_is_and_is_not_asked_about() -> None:
    model = Scripted(lambda _: facts("F."))
    (found,) = atomic(model).extract_many([Answer("Q", "Hello! Tea is hot. Do you like it?", CHUNKS)])
    assert [(c.kind, c.text) for c in found.claims] == [("greeting", None), ("claim", "F."), ("question", None)]
    assert len(model.asked) == 1


def test_the_same_fact_twice_is_one() -> None:
    assert [c.text for c in cut(lambda _: facts("F.", "F.", "G."), "One.").claims] == ["F.", "G."]


def test_an_outage_is_stated_so_that_nothing_is_kept() -> None:
    extractor = atomic(lambda p: Generated(failure=OUTAGE) if "Tea" in sentence(p) else facts("F."))
    found = extractor.extract_many([Answer("Q", text, CHUNKS) for text in (ANSWER, "Ice is cold.")])
    assert [e.outage for e in found] == [True, False]
    with pytest.raises(EngineError):
        atomic(Scripted(lambda _: "", up_for=0)).extract_many([Answer("Q", ANSWER)])


def test_the_model_reads_question_answer_and_the_sentence_without_its_references() -> None:
    model = Scripted(lambda _: facts("F."))
    atomic(model).extract_many([Answer("How hot?", "It is **very** hot [1].", CHUNKS), Answer("Cold?", "")])
    (prompt,) = model.asked  # an answer without sentences asks nothing
    assert sentence(prompt) == "It is very hot"  # what a judge would read of it
    assert "<question>\nHow hot?\n</question>" in prompt.user
    assert "It is **very** hot [1]." in prompt.user


def test_all_sentences_of_all_answers_are_asked_about_at_once() -> None:
    model = Scripted(lambda _: facts("F."))
    found = atomic(model).extract_many([Answer("Q", "One. Two.")] * 3)
    assert [len(call) for call in model.calls] == [6]
    assert [len(e.claims) for e in found] == [2, 2, 2]


@given(st.text(max_size=200), st.integers(0, 2**30))
def test_every_sentence_is_covered_whatever_the_model_says(text: str, seed: int) -> None:
    """Spans are those of `sentences`, in order, each at least once, with the sentence's references."""
    replies = [facts("A.", "B."), facts(), "?", facts("C."), Reply("", "length")]
    found = cut(lambda p: replies[(seed + len(p.user) * 7) % 5], text)
    claims = [(c.start, c.end, c.cited_chunk_ids, c.dangling) for c in found.claims]
    sentences = [
        (c.start, c.end, c.cited_chunk_ids, c.dangling) for c in SENTENCES.extract(Answer("", text, CHUNKS)).claims
    ]
    assert list(dict.fromkeys(claims)) == sentences
    assert claims == sorted(claims, key=lambda c: c[0])
    assert found.unbroken == sum(c.text is None for c in found.claims if c.kind == "claim")


@given(st.integers(0, 60_000), st.integers(1, 60_000))
def test_what_is_shown_around_a_sentence_is_bounded_and_holds_its_beginning(start: int, more: int) -> None:
    length = start + more
    begin, end = _around(start, length)
    assert 0 <= begin <= start < end
    assert end - begin == AROUND
    assert length > AROUND or begin == 0  # a short answer is shown whole
    assert begin == 0 or min(end, length) - begin == AROUND  # and of a long one nothing is given away


class TestLoad:
    def settings(self, folder: Path, **more: Any) -> dict[str, Any]:
        """Settings of a config file in `folder`, beside which a writer lies in `writers/`."""
        prompt = str(PROMPTS / "facts" / "v1.md")
        (folder / "writers").mkdir(exist_ok=True)
        text = yaml.safe_dump({"kind": "generate", "model": {**MODEL, **more.pop("model", {})}, "prompt": prompt})
        (folder / "writers" / "w.yaml").write_text(text)
        return {"kind": "atomic", "writer": "writers/w.yaml", **more}

    def test_the_version_is_that_of_settings_and_writer_not_of_the_place(self, tmp_path: Path) -> None:
        def version(name: str, **more: Any) -> str:
            (tmp_path / name).mkdir(exist_ok=True)
            return load(self.settings(tmp_path / name, **more), str(tmp_path / name / "nightly.yaml")).version

        assert version("a") == version("b")
        others = [
            version("a", citation_style="numeric"),
            version("a", language="de"),
            version("a", model={"seed": 1, "temperature": 1}),
        ]
        assert len({version("a"), *others, SENTENCES.version}) == 5

    def test_the_writer_must_be_there_and_be_one(self, tmp_path: Path) -> None:
        settings = self.settings(tmp_path)
        with pytest.raises(ConfigError, match=r"n\.yaml: recipe\.extractor\.writer is missing"):
            load({"kind": "atomic"}, str(tmp_path / "n.yaml"), "recipe.extractor")
        with pytest.raises(ConfigError, match=r"none\.yaml does not exist"):
            load({**settings, "writer": "writers/none.yaml"}, str(tmp_path / "n.yaml"))
        (tmp_path / "writers" / "w.yaml").write_text("kind: replay\n")
        with pytest.raises(ConfigError, match=r"w\.yaml"):
            load(settings, str(tmp_path / "n.yaml"))

    def test_apps_of_one_file_share_a_writer(self, tmp_path: Path) -> None:
        settings = self.settings(tmp_path)
        apps = {"shop": {**settings, "citation_style": "none"}, "help": {"kind": "segments"}}
        by_app = load_by_app(settings, apps, str(tmp_path / "n.yaml"), "recipe")
        default, shop, help_ = (by_app._of(app) for app in ("other", "shop", "help"))
        assert shop.writer is default.writer  # type: ignore[attr-defined]
        assert shop.version != default.version
        assert help_.modelless is help_

    def test_each_app_is_cut_its_own_way_and_order_is_kept(self, tmp_path: Path) -> None:
        apps = {"help": {"kind": "segments"}, "shop": {"kind": "sentences", "citation_style": "none"}}
        by_app = load_by_app({"kind": "sentences"}, apps, str(tmp_path / "n.yaml"), "recipe")
        texts = ["One. Two [1].", "A [1].", "Three."]
        found = by_app.extract_many([(app, Answer("Q", t, CHUNKS)) for t in texts for app in ("x", "help", "shop")])
        cited = [[" ".join(c.cited_chunk_ids) for c in e.claims] for e in found]
        assert cited == [["a", "a"], ["a"], ["", ""], ["a"], ["a"], [""], [""], [""], [""]]

    def test_what_needs_no_model_gives_the_sentences(self, tmp_path: Path) -> None:
        by_app = load_by_app(self.settings(tmp_path), {}, str(tmp_path / "n.yaml"), "recipe")
        (found,) = by_app.modelless.extract_many([("shop", Answer("Q", ANSWER, CHUNKS))])
        assert found == SENTENCES.extract(Answer("", ANSWER, CHUNKS))
