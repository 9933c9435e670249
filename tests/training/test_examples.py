"""Authored claims as distillation examples: what a student is shown of them, and what it never is."""

import json

import pytest
import yaml
from kit.root import ROOT

from tasks import judges
from tasks.core.errors import UsageError
from tasks.distill.export import Shares, Student, export
from training.__main__ import main
from training.authored import Claim, Document
from training.examples import Authored, read

PROMPTS = {name: str(ROOT / f"configs/prompts/{name}/v1.md") for name in ("entailment", "entailment_explained")}
STUDENT = {"kind": "llm", "prompt": PROMPTS["entailment"], "explained_prompt": PROMPTS["entailment_explained"]}
SHOP = Document(
    ("The shop opens at nine.", "It closes at six.", "Dogs may come in."),
    (
        Claim("The shop is open from nine to six.", "S", (1, 0), "merge"),
        Claim("Dogs and cats may come in.", "P", (2,), "scope"),
        Claim("The shop sells bread.", "U", (), "new"),
        Claim("The shop closes at eight.", "C", (1,), "number", context="When does it close?"),
    ),
    "natural",
    "0000000b" * 4,  # 11 is no multiple of 10: for training
)
MEASURED = Document(
    ("The mill burned down.",), (Claim("The mill burned.", "S", (0,), "event"),), "natural", "0000000a" * 4
)


@pytest.fixture
def student(tmp_path):
    def of(explain):
        path = tmp_path / "student.yaml"  # nothing loads its model
        path.write_text(yaml.safe_dump({**STUDENT, "explain": explain, "model": {"model": "./none"}}))
        return judges.load(path)

    return of


def written(tmp_path, judge, documents):
    """The examples that `python -m training distill` reads, by split, and the card's counts."""
    pupil = Student("judge", judge.config.model_dump(), judge.prompt_hashes, tmp_path)
    about = {"teacher": {"name": "authored", "kind": "labels", "version": "1"}, "command": "make it"}
    export(Authored(documents, judge), pupil, Shares(0, None), about, "1", tmp_path / "out")
    (folder,) = read([tmp_path / "out"])
    return folder.chats, folder.card["examples"]


def test_a_reply_quotes_what_decides_the_claim_and_gives_the_authors_label(tmp_path, student):
    chats, _ = written(tmp_path, student("always"), [SHOP])
    assert [json.loads(reply) for _, _, reply in chats["train"]] == [
        # In the order of the page, whatever the order of `needs`.
        {
            "explanation": "The passage says: The shop opens at nine. It closes at six.",
            "label": "supported",
            "passages": [1],
        },
        {"explanation": "The passage says: Dogs may come in.", "label": "partially_supported", "passages": [1]},
        # Nothing decides it, so there is nothing to quote, and no passage to name.
        {"explanation": "The passage does not say this.", "label": "unsupported", "passages": []},
        {"explanation": "The passage says: It closes at six.", "label": "contradicted", "passages": [1]},
    ]


def test_a_prompt_shows_the_whole_document_and_the_claim_with_its_question(tmp_path, student):
    chats, _ = written(tmp_path, student("never"), [SHOP])
    shown = [user for _, user, _ in chats["train"]]
    assert all(SHOP.text in text for text in shown)
    assert "When does it close? The shop closes at eight." in shown[3]


def test_a_claim_is_an_example_for_each_prompt_that_would_ask_about_it(tmp_path, student):
    chats, counts = written(tmp_path, student("on_failure"), [SHOP])
    # Four claims without an explanation; with one only the three that the student would be asked about again.
    assert len(chats["train"]) == 4 + 3
    assert counts["explained"]["left_out"]["not_asked"] == 1


def test_documents_for_measuring_are_never_examples(tmp_path, student):
    chats, counts = written(tmp_path, student("never"), [MEASURED, SHOP])
    assert counts["plain"]["judged"] == 4
    assert not any("mill" in text for chat in chats["train"] for text in chat)


def test_only_a_language_model_can_learn_it(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["examples", "--student", str(ROOT / "configs/judges/similarity.yaml"), "--out", str(tmp_path / "out")])
    assert ended.value.code == UsageError.exit_code
    assert "is no judge of kind llm" in capsys.readouterr().err


def test_the_kinds_of_documents_can_be_chosen(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "examples",
                "--student",
                str(ROOT / "bench/accuracy/student.yaml"),
                "--source",
                "natural",
                "--out",
                str(out),
            ]
        )
    assert not ended.value.code
    rows = [json.loads(line) for split in ("train", "valid") for line in (out / f"{split}.jsonl").open()]
    assert {row["provenance"]["source"] for row in rows} == {"natural"}


def test_a_kind_of_documents_that_there_is_not_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["examples", "--student", "x.yaml", "--source", "novels", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "'novels' is not one of" in capsys.readouterr().err
