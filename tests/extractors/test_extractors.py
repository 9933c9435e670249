"""Loading extractors: settings, errors and versions."""

import json
import re

import pytest
from kit.root import ROOT

from tasks.core.errors import ConfigError
from tasks.core.types import Answer, Chunk
from tasks.extractors import load

EXPERTQA = ROOT.parent / "shared" / "data" / "expertqa" / "dev"


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, ["kind is missing", "segments, sentences"]),
        ({"kind": "sentence"}, ["kind is 'sentence'", "Did you mean 'sentences'?"[:-1]]),
        ({"kind": "citations"}, ["kind is 'citations'", "no kind of extractor"]),  # a module, but no extractor
        ({"kind": 3}, ["kind is 3"]),
        ({"kind": "segments", "citation_stile": "auto"}, ["citation_stile", "not a known key", "'citation_style'"]),
        ({"kind": "segments", "citation_style": "numerik"}, ["citation_style is 'numerik'", "'numeric'"]),
        ({"kind": "sentences", "language": "English"}, ["language is 'English'"]),
        ({"kind": "segments", "styles": {"x": "("}}, ["styles", "valid regular expression", "'x'"]),
        ({"kind": "segments", "styles": {"x": r"<(\d+)>"}}, ["styles", "(?P<ref>", "'x'"]),
        ({"kind": "segments", "styles": {"auto": r"<(?P<ref>\d+)>"}}, ["styles", "'auto'", "another name"]),
    ],
)
def test_mistakes_name_file_key_value_and_remedy(settings: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load(settings, "configs/nightly.yaml")
    for part in ["configs/nightly.yaml", *parts]:
        assert part in str(error.value)


def test_the_place_inside_the_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nightly\.yaml: recipe\.extractor\.kind is missing"):
        load({}, "nightly.yaml", "recipe.extractor")


def test_the_version_is_that_of_the_settings() -> None:
    own = {"styles": {"x": r"<(?P<ref>\d+)>"}}
    settings: list[dict[str, object]] = [
        {"kind": "segments"},
        {"kind": "sentences"},
        {"kind": "sentences", "language": "de"},
        {"kind": "segments", "citation_style": "numeric"},
        {"kind": "segments", **own},
        {"kind": "segments", "styles": {"x": r"<(?P<ref>\w+)>"}},
    ]
    versions = [load(s, "x").version for s in settings]
    assert len(set(versions)) == len(settings)
    assert versions == [load(dict(reversed(s.items())), "y").version for s in settings]
    assert load({"kind": "segments", "citation_style": "auto"}, "x").version == versions[0]  # a default spelt out


@pytest.mark.skipif(not EXPERTQA.exists(), reason="the ExpertQA traces are not beside this checkout")
def test_sentences_of_real_answers_are_those_that_people_judged() -> None:
    """ExpertQA's claims are sentences made by another segmenter: nine in ten should come out the same."""
    extractor = load({"kind": "sentences"}, "x")
    wanted: dict[str, set[str]] = {}
    for line in (EXPERTQA / "labels.jsonl").read_text(encoding="utf-8").splitlines():
        label = json.loads(line)
        wanted.setdefault(label["trace_id"], set()).add(_letters(label["claim"]))
    same = 0
    for line in (EXPERTQA / "traces.jsonl").read_text(encoding="utf-8").splitlines():
        trace = json.loads(line)
        chunks = [Chunk(c["chunk_id"], c["text"], doc_id=c["doc_id"], rank=c["rank"]) for c in trace["chunks"]]
        (found,) = extractor.extract_many([Answer(trace["question"], trace["answer"], chunks)])
        texts = {_letters(trace["answer"][d.start : d.end]) for d in found.claims if d.kind != "heading"}
        same += len(texts & wanted.get(trace["trace_id"], set()))
    assert same >= 0.9 * sum(map(len, wanted.values()))


def _letters(text: str) -> str:
    return "".join(c for c in re.sub(r"\[\d+\]|https?://\S+", "", text) if c.isalpha())
