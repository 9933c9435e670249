"""The model-free grader, with its real models, on answers made up for it.

docs/methods.md#grades-of-a-grounded-answer defines what each answer should get; no threshold was chosen on these texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.root import ROOT

from tasks import extractors, graders
from tasks.core.errors import ConfigError
from tasks.core.grades import GRADED, RANGES, Answered, Grade, Grader, derived
from tasks.core.types import OUTAGE, Answer, Chunk, Request, Verdict
from tasks.graders.entailment import Config, Entailment

PASSAGES = (
    "The observatory. The observatory on Mount Halden is open on Fridays from 20:00 to 23:30 if the sky is clear. "
    "Admission is 6 crowns, and children under 12 get in free. The dome seats 40 people.",
    "Getting there. The cable car runs every 20 minutes until midnight and costs 4 crowns each way. "
    "Cars are not allowed above the lower station. Dogs must be kept on a lead.",
    "The bakery in the village sells rye bread and plum cake. It closes at 14:00 and bakes no rolls on Mondays.",
)
HOURS = "When is the observatory open, and what does admission cost?"
CUT = extractors.load({"kind": "sentences"}, "test")


def answered(question: str, answer: str, reference: str | None = None) -> Answered:
    chunks = [Chunk(str(number), text) for number, text in enumerate(PASSAGES, start=1)]
    return Answered(question, answer, PASSAGES, graders.statements(CUT, Answer(question, answer, chunks)), reference)


PERFECT = answered(
    HOURS,
    "The observatory is open on Fridays from 20:00 to 23:30 if the sky is clear [1]. Admission is 6 crowns, and "
    "children under 12 get in free [1].",
)
BARE = answered("Who built the telescope?", "The documents do not say who built the telescope.")
USEFUL = answered(
    "Are there group discounts for admission to the observatory?",
    "The documents do not mention group discounts. They do say that admission to the observatory is 6 crowns and that "
    "children under 12 get in free [1].",
)
USELESS = answered("Who built the telescope?", f"{BARE.answer} The bakery sells rye bread and plum cake [3].")
WRONGLY = answered(
    "Are cars allowed above the lower station?",
    "I could not find out whether cars are allowed there.",
)
INVENTED = answered(
    "How heavy is the main mirror?", "The main mirror weighs 900 kilograms [1]. It was polished in Sweden [1]."
)
UNCITED = replace(PERFECT, statements=(*PERFECT.statements[:-1], replace(PERFECT.statements[-1], cited=())))
ELSEWHERE = replace(PERFECT, statements=(*PERFECT.statements[:-1], replace(PERFECT.statements[-1], cited=(3,))))
REVERSED = answered("May I drive up by car?", "Yes, cars are allowed above the lower station [2].")
ADDED = answered(HOURS, f"{PERFECT.answer} The bakery sells rye bread and plum cake, and it closes at 14:00 [3].")
BESIDE = answered(HOURS, "The bakery in the village sells rye bread and plum cake [3]. It closes at 14:00 [3].")
ALL = (PERFECT, BARE, USEFUL, USELESS, WRONGLY, INVENTED, UNCITED, ELSEWHERE, REVERSED, ADDED, BESIDE)


@pytest.fixture(scope="module")
def grader() -> Grader:
    return graders.load(ROOT / "configs" / "graders" / "entailment.yaml")


@pytest.fixture(scope="module")
def grades(grader: Grader) -> dict[int, Mapping[str, Grade]]:
    return {id(answer): found for answer, found in zip(ALL, grader.grade(ALL), strict=True)}


@pytest.mark.parametrize(("answer", "expected"), [
    (PERFECT, (5, 5, 1, None)),
    (BARE, (None, None, None, None)),
    (USEFUL, (None, None, 1, 1)),
    (USELESS, (None, None, 1, 0)),
    (WRONGLY, (None, 1, None, None)),
    (UNCITED, (5, 5, 0, None)),
    (ELSEWHERE, (5, 5, 0, None)),
    (BESIDE, (1, 1, 1, None)),
], ids=["perfect", "bare", "useful", "useless", "wrongly", "uncited", "elsewhere", "beside"])  # fmt: skip
def test_gives_what_methods_9_asks_for(
    grades: dict[int, Mapping[str, Grade]], answer: Answered, expected: Sequence[int | None]
) -> None:
    assert tuple(grades[id(answer)][name].value for name in GRADED) == expected


def test_what_the_passages_do_not_hold_is_unfaithful_and_leaves_nothing_to_complete(
    grades: dict[int, Mapping[str, Grade]],
) -> None:
    found = grades[id(INVENTED)]
    assert (found["completeness"].status, found["faithfulness"].value) == ("na", 0)
    assert derived(found)["negative_rejection"].value == 0  # it answers though nothing answers


def test_a_reversed_source_is_no_support(grades: dict[int, Mapping[str, Grade]]) -> None:
    assert grades[id(REVERSED)]["faithfulness"].value == 0
    assert grades[id(REVERSED)]["completeness"].status == "scored"  # the passage does answer


def test_what_is_beside_the_point_costs_relevancy_alone(grades: dict[int, Mapping[str, Grade]]) -> None:
    found = grades[id(ADDED)]
    assert found["answer_relevancy"].value in {2, 3, 4}
    assert (found["completeness"].value, found["faithfulness"].value) == (5, 1)


def test_reasons_name_numbers_and_quote_nothing(grades: dict[int, Mapping[str, Grade]]) -> None:
    reason = grades[id(ELSEWHERE)]["faithfulness"].explanation
    assert reason is not None
    assert reason.startswith("statement 2 is not supported by passage 3 (p 0.")
    assert grades[id(UNCITED)]["faithfulness"].explanation == "statement 2 cites no passage"
    explanations = " ".join(g.explanation or "" for found in grades.values() for g in found.values()).casefold()
    assert not [word for word in ("observatory", "crowns", "bakery", "telescope", "cable") if word in explanations]


def test_values_are_in_range_or_none(grades: dict[int, Mapping[str, Grade]]) -> None:
    for found in grades.values():
        for name in GRADED:
            least, most = RANGES[name]
            assert found[name].value in [*range(least, most + 1), None]
            assert (found[name].status == "scored") == (found[name].value is not None)


def without_tokens(found: Mapping[str, Grade]) -> dict[str, Grade]:
    return {name: replace(grade, tokens_in=0) for name, grade in found.items()}


def test_a_grade_depends_on_its_answer_alone(grader: Grader, grades: dict[int, Mapping[str, Grade]]) -> None:
    again = grader.grade(ALL[::-1])
    assert [without_tokens(f) for f in again] == [without_tokens(grades[id(a)]) for a in ALL[::-1]]
    (alone,) = grader.grade([ADDED])
    assert without_tokens(alone) == without_tokens(grades[id(ADDED)])
    assert grader.grade([]) == []


def test_an_answer_in_part_does_not_decline_in_one_sentence_either(grader: Grader) -> None:
    opens = "The observatory is open on Fridays from 20:00 to 23:30"
    partly = answered(HOURS, f"{opens} [1], but the documents do not say whether children pay.")
    nothing = answered(
        "Are there group discounts?", "Admission is 6 crowns [1], but the documents do not mention group discounts."
    )
    found = [one["answer_relevancy"].status for one in grader.grade([partly, nothing])]
    assert found == ["scored", "na"]  # what it says is nearer to what was asked, or what it declines


@pytest.mark.parametrize("text", ["", " ", "![](x.png)", "Hello!", "🙂"])
def test_an_answer_that_states_nothing_is_graded_all_the_same(grader: Grader, text: str) -> None:
    (found,) = grader.grade([answered(HOURS, text)])
    assert [found[n].value for n in ("answer_relevancy", "faithfulness", "usefulness")] == [1, None, None]
    (found,) = grader.grade([Answered("", text, (), ())])
    assert found["completeness"].status in {"na", "scored"}


@pytest.fixture(scope="module")
def by_reference() -> Grader:
    return graders.load(ROOT / "configs" / "graders" / "entailment-reference.yaml")


class TestReference:
    """Completeness by a reference answer; without one it is as if there were none."""

    @pytest.mark.parametrize(("reference", "value"), [
        ("On Fridays from 20:00 to 23:30 if the sky is clear [1]; admission is 6 crowns, free for children [1].", 5),
        ("The documents do not say when it is open.", None),
        ("Take the cable car, which runs until midnight and costs 4 crowns each way [2]. No cars are allowed [2].", 1),
    ])  # fmt: skip
    def test_goes_by_what_people_stated(self, by_reference: Grader, reference: str, value: int | None) -> None:
        (found,) = by_reference.grade([replace(PERFECT, reference=reference)])
        assert found["completeness"].value == value

    def test_a_refusal_is_wrong_where_people_answered(self, by_reference: Grader) -> None:
        (found,) = by_reference.grade([replace(BARE, reference="Oda Lind built it in 1921 [1].")])
        assert found["completeness"].value == 1
        assert derived(found)["positive_acceptance"].value == 0

    def test_counts_only_where_it_is_asked_for_and_there(
        self, by_reference: Grader, grader: Grader, grades: dict[int, Mapping[str, Grade]]
    ) -> None:
        given_one = replace(PERFECT, reference="The documents do not say when it is open.")
        (ignored,) = grader.grade([given_one])
        assert without_tokens(ignored) == without_tokens(grades[id(PERFECT)])
        (none,) = by_reference.grade([PERFECT])
        assert without_tokens(none) == without_tokens(grades[id(PERFECT)])
        assert not by_reference.needs_reference


class Failing:
    """A judge of claims that gives no verdict."""

    version, engine, gpus = "failing", "none", 0

    def __init__(self, failure: str) -> None:
        self.failure = failure

    def describe(self) -> dict[str, Any]:
        return {}

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        return [Verdict(r.key, failure=self.failure) for r in requests]

    def close(self) -> None:
        pass


@pytest.mark.parametrize("failure", [OUTAGE, "too_long"])
def test_without_a_verdict_there_is_no_grade_that_needs_one(failure: str) -> None:
    (found,) = Entailment(Config(judge=Path("x")), Failing(failure)).grade([PERFECT])
    assert (found["faithfulness"].status, found["faithfulness"].failure) == ("failed", failure)
    assert (found["completeness"].status, found["completeness"].failure) == ("failed", failure)
    assert found["answer_relevancy"].value == 5


def test_every_token_that_the_judge_read_is_counted() -> None:
    class Paid(Failing):
        """Supports nothing, at a token for each request: then the judge reads the passages that nobody cites too."""

        requests_read = 0

        def judge(self, requests: Sequence[Request]) -> list[Verdict]:
            self.requests_read += len(requests)
            return [Verdict(r.key, "unsupported", 0.0, 0.0, tokens_in=1) for r in requests]

    judge = Paid("")
    (found,) = Entailment(Config(judge=Path("x")), judge).grade([INVENTED])
    assert found["faithfulness"].tokens_in == judge.requests_read >= 2 * len(PASSAGES)


def test_the_judge_may_be_any_judge_of_claims(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text("kind: replay\nseed: 1\n")
    (tmp_path / "g.yaml").write_text(yaml.safe_dump({"kind": "entailment", "judge": "j.yaml"}))
    (found,) = graders.load(tmp_path / "g.yaml").grade([PERFECT])
    assert found["answer_relevancy"].value == 5
    assert found["faithfulness"].status in {"scored", "failed"}
    assert graders.opened(tmp_path / "j.yaml").version == graders.load(tmp_path / "g.yaml").version


def test_a_threshold_out_of_range_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text("kind: replay\nseed: 1\n")
    settings = {"kind": "entailment", "judge": "j.yaml", "support": {"repeated": 1.5}}
    (tmp_path / "g.yaml").write_text(yaml.safe_dump(settings))
    with pytest.raises(ConfigError, match=r"g\.yaml: support\.repeated"):
        graders.load(tmp_path / "g.yaml")
