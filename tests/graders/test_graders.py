"""Graders from their files, judges of claims opened as graders, and answers cut into statements."""

from pathlib import Path

import pytest
from kit.root import ROOT

from tasks import extractors, graders, judges
from tasks.core.errors import ConfigError, EngineError
from tasks.core.grades import Statement
from tasks.core.types import Answer, Chunk, Citation, ClaimDraft, Extraction

SHIPPED = sorted((ROOT / "configs" / "graders").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_graders_load_without_a_model(path: Path) -> None:
    grader = graders.opened(path)
    assert grader.version == graders.load(path).version
    assert grader.needs_reference == (path.stem == "qwen3-8b-24gb-reference")
    assert grader.asks == path.stem.startswith("qwen3")


def test_a_judge_of_claims_is_opened_as_the_grader_that_asks_it() -> None:
    path = ROOT / "configs" / "judges" / "nli.yaml"
    opened = graders.opened(path)
    assert opened.describe()["judge"] == judges.load(path).version
    assert opened.version == graders.load(ROOT / "configs" / "graders" / "entailment.yaml").version


def test_of_kind_llm_prompts_make_the_grader() -> None:
    grader = graders.opened(ROOT / "configs" / "judges" / "qwen3-8b-24gb.yaml")
    assert grader.describe()["judge"] == judges.load(ROOT / "configs" / "judges" / "qwen3-8b-24gb.yaml").version
    assert not grader.asks


@pytest.mark.parametrize(("text", "message"), [
    ("seed: 1\n", r"g\.yaml: kind is missing.*constant.*entailment.*llm.*random"),
    ("kind: entailmnt\n", r"Did you mean 'entailment'"),
    ("kind: rater_model\n", r"is no kind of grader|which is no kind of grader"),
    ("kind: random\nsede: 1\n", r"sede is not a known key.*Did you mean 'seed'"),
    ("kind: entailment\njudge: none.yaml\n", r"none\.yaml does not exist"),
])  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "g.yaml").write_text(text)
    for open_ in (graders.load, graders.opened):
        with pytest.raises(ConfigError, match=message):
            open_(tmp_path / "g.yaml")


CHUNKS = [Chunk("7", "Tea is hot."), Chunk("9", "Ice is cold.")]


def test_statements_cite_by_the_number_of_the_chunk() -> None:
    cutter = extractors.load({"kind": "sentences"}, "test")
    answer = Answer("?", "**Tea** is hot [7]. Ice is cold [9][7]. Milk is white [5].\n\nThat is all.", CHUNKS)
    assert graders.statements(cutter, answer) == (
        Statement("Tea is hot", (1,)),
        Statement("Ice is cold", (1, 2)),
        Statement("Milk is white", (), 1),
        Statement("That is all."),
    )


def test_logged_citations_count_too() -> None:
    cutter = extractors.load({"kind": "sentences"}, "test")
    answer = Answer("?", "Ice is cold.", CHUNKS, (Citation(0, 12, ("9",)),))
    assert graders.statements(cutter, answer) == (Statement("Ice is cold.", (2,)),)


class Facts:
    """An extractor whose model writes claims in words of its own, or is down."""

    outage = False

    def extract_many(self, answers: list[Answer]) -> list[Extraction]:
        return [
            Extraction([ClaimDraft(0, 3, ("9",), hypothesis="It is cold.", text="It is cold.")], outage=self.outage)
            for _ in answers
        ]


def test_a_claim_in_other_words_stands_as_written_and_an_outage_ends_it() -> None:
    cutter = Facts()
    answer = Answer("?", "Ice", CHUNKS)
    assert graders.statements(cutter, answer) == (Statement("It is cold.", (2,)),)  # type: ignore[arg-type]
    assert graders.statements(
        extractors.load({"kind": "sentences"}, "x"), Answer("?", "Hi! Ice is cold [9].", CHUNKS)
    ) == (
        Statement("Ice is cold", (2,)),  # a greeting states nothing
    )
    cutter.outage = True
    with pytest.raises(EngineError, match="did not process"):
        graders.statements(cutter, answer)  # type: ignore[arg-type]
